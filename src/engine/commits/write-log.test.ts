import { describe, expect, test } from 'vitest'
import { fc, inputs } from '../../../testing/properties.ts'
import { type CommitWrites, ReadSet } from './read-set.ts'
import { WriteLog } from './write-log.ts'

const name = fc.constantFrom(...'abcdefgh')
const writes = fc.record({
  documents: fc.uniqueArray(name, { maxLength: 3 }),
  keys: fc
    .uniqueArray(fc.tuple(fc.nat(2), fc.array(name, { maxLength: 3 })), { selector: ([i]) => i })
    .map((entries): ReadonlyMap<number, readonly string[]> => new Map(entries)),
})
const interval = fc.record({ index: fc.nat(2), lower: name, upper: name })
const bounds = { latestSequence: 10, entriesMax: 1_000_000, charactersMax: 64 * 1024 * 1024 }

function readSetOf(
  documents: readonly string[],
  intervals: readonly { index: number; lower: string; upper: string }[],
): ReadSet {
  const readSet = new ReadSet()
  for (const id of documents) readSet.addDocument(id)
  for (const { index, lower, upper } of intervals) readSet.addInterval(index, { lower, upper })
  return readSet
}

/** Returns the names of what was both read and written, as an unordered set. */
function conflictNames(log: readonly CommitWrites[], readSet: ReadSet): Set<string> {
  const names = new Set<string>()
  for (const { documents, keys } of log) {
    for (const id of documents) if (readSet.documents.has(id)) names.add(id)
    for (const [index, list] of keys) {
      for (const key of list) if (readSet.coversKey(index, key)) names.add(`${index}:${key}`)
    }
  }
  return names
}

function names(found: ReturnType<WriteLog['conflicts']>): Set<string> | string {
  if (found === 'unknown') return found
  const keys = found?.keys.map(({ index, key }) => `${index}:${key}`) ?? []
  return new Set([...(found?.documents ?? []), ...keys])
}

describe('the write log', () => {
  test('finds exactly what was written after the snapshot, or reports that it is unknown', {
    tags: ['slow'],
  }, () => {
    fc.assert(
      fc.property(
        fc.array(writes, { maxLength: 30 }),
        fc.array(name, { maxLength: 6 }),
        fc.array(interval, { maxLength: 4 }),
        fc.nat(40),
        fc.integer({ min: 1, max: 60 }),
        (commits, documents, intervals, back, entriesMax) => {
          const log = new WriteLog({ ...bounds, entriesMax })
          commits.forEach((each, i) => {
            log.append({ sequence: 11 + i, writes: each, oldestPinned: 0 })
            expect(log.entries).toBeLessThanOrEqual(entriesMax)
          })
          const snapshot = 10 + Math.max(0, commits.length - back)
          const readSet = readSetOf(documents, intervals)
          const found = names(log.conflicts(readSet, snapshot))
          const after = commits.slice(snapshot - 10)
          const unknown = snapshot < log.oldestSnapshot && after.length > 0 && readSet.count > 0
          expect(found).toEqual(unknown ? 'unknown' : conflictNames(after, readSet))
        },
      ),
      { numRuns: inputs(5_000) },
    )
  })

  test('a commit drops those that every pinned snapshot already sees', () => {
    const log = new WriteLog(bounds)
    const write = (id: string): CommitWrites => ({ documents: [id], keys: new Map() })
    log.append({ sequence: 11, writes: write('a'), oldestPinned: 10 })
    log.append({ sequence: 12, writes: write('b'), oldestPinned: 10 })
    expect(log.oldestSnapshot).toBe(10)
    log.append({ sequence: 13, writes: write('c'), oldestPinned: 11 })
    expect(log.oldestSnapshot).toBe(11)
    const readSet = readSetOf(['a'], [])
    expect(log.conflicts(readSet, 10)).toBe('unknown')
    expect(log.conflicts(readSet, 11)).toBeNull()
    expect(names(log.conflicts(readSetOf(['b', 'c'], []), 11))).toEqual(new Set(['b', 'c']))
  })

  test('a log that drops old commits all the time stays compact and finds conflicts', () => {
    const log = new WriteLog({ ...bounds, entriesMax: 3_000 })
    for (let sequence = 11; sequence < 30_000; sequence++) {
      const keys = new Map([[sequence % 3, [`k${sequence}`]]])
      log.append({ sequence, writes: { documents: [`d${sequence}`], keys }, oldestPinned: 0 })
    }
    expect(log.entries).toBe(3_000)
    expect(log.oldestSnapshot).toBe(29_999 - 1_500)
    const snapshot = log.oldestSnapshot
    expect(log.conflicts(readSetOf([`d${snapshot}`], []), snapshot)).toBeNull()
    expect(log.conflicts(readSetOf([`d${snapshot + 1}`], []), snapshot)).toEqual({
      documents: [`d${snapshot + 1}`],
      keys: [],
    })
  })

  test('a commit beyond the bounds empties the log, and the next snapshot is known again', () => {
    const log = new WriteLog({ ...bounds, entriesMax: 5 })
    const documents = [...'abcdef']
    log.append({ sequence: 11, writes: { documents, keys: new Map() }, oldestPinned: 0 })
    expect([log.entries, log.oldestSnapshot]).toEqual([0, 11])
    expect(log.conflicts(readSetOf(['z'], []), 10)).toBe('unknown')
    expect(log.conflicts(readSetOf(['a'], []), 11)).toBeNull()
  })

  test('the memory of dropped commits is reclaimed at once', () => {
    const log = new WriteLog(bounds)
    const writes: WeakRef<CommitWrites>[] = []
    for (let sequence = 11; sequence < 511; sequence++) {
      const written = { documents: [`d${sequence}`], keys: new Map([[1, [`k${sequence}`]]]) }
      writes.push(new WeakRef(written))
      log.append({ sequence, writes: written, oldestPinned: sequence - 10 })
    }
    Bun.gc(true)
    expect(log.oldestSnapshot).toBe(500)
    // The stack may still hold a few.
    expect(writes.filter((each) => each.deref() !== undefined).length).toBeLessThan(30)
  })

  test('the characters of long keys are bounded', () => {
    const log = new WriteLog(bounds)
    for (let sequence = 11; sequence < 6_011; sequence++) {
      const keys = new Map([[1, [`${sequence}`.padEnd(16_384)]]])
      log.append({ sequence, writes: { documents: [], keys }, oldestPinned: 0 })
    }
    expect(log.entries).toBe(4_096)
  })
})
