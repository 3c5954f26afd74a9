import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateX25519Identity } from 'age-encryption'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { realSystem } from '../../system/system.ts'
import type { EnvironmentId, HistoryId } from '../../value/ids.ts'
import { Opener, recipientOf, Sealer } from '../format/age-files.ts'
import type { BackupSource } from '../format/backup-reader.ts'
import { BackupWriter } from '../format/backup-writer.ts'
import { ChainWriter } from '../format/chain-writer.ts'
import { IncrementLines } from '../format/increment-lines.ts'
import { DirectoryTarget } from '../targets/directory.ts'
import { selectRestore } from './goals.ts'
import { readChanges } from './increments.ts'

const ADDRESS = {
  environmentId: 'env_00000000000000000000000001' as EnvironmentId,
  historyId: 'hst_00000000000000000000000001' as HistoryId,
}

let directory: string
let source: BackupSource
let chain: ChainWriter

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'goals-'))
  const target = new DirectoryTarget(directory)
  const identity = await generateX25519Identity()
  const sealer = new Sealer([await recipientOf(identity)])
  source = { target, opener: new Opener([identity]) }
  chain = await ChainWriter.open({ target, sealer, address: ADDRESS })
  const backupId = realSystem().ids.make('bkp')
  await new BackupWriter({ chain, backupId, sequence: 0, atMicros: 1n }).finish()
})
afterEach(() => rmSync(directory, { recursive: true }))

/** Writes an increment at a time, with a commit at each of the other times, or with a table. */
async function increment(atMicros: bigint, from: number, commitsMicros: readonly number[]) {
  const lines = new IncrementLines()
  if (commitsMicros.length === 0) lines.add({ t: 'controlTable', table: 'channels' })
  for (const [i, micros] of commitsMicros.entries()) {
    const sequence = from + i + 1
    lines.add({ t: 'commit', sequence, atMicros: String(micros) })
    const id = `notes_${String(sequence).padStart(26, '0')}`
    lines.add({ t: 'document', id, createdAtMicros: '5', sequence, text: '{}' })
  }
  const to = from + commitsMicros.length
  await chain.append({
    kind: 'increment',
    backupId: null,
    first: null,
    fromSequence: from,
    toSequence: to,
    run: { from: 0, to, files: to },
    atMicros,
    ...lines.finish(),
  })
}

/** Returns the newest sequence, and the number of changed tables, of the state at a time. */
async function stateAt(atMicros: bigint): Promise<[sequence: number, tables: number]> {
  const goal = { sequence: null, atMicros }
  const { increments } = await selectRestore(source, ADDRESS, goal)
  let after = 0
  let tables = 0
  for (const sidecar of increments) {
    const { commits, others } = await readChanges(source, { sidecar, after, goal })
    after = commits.at(-1)?.sequence ?? after
    tables += others.length
  }
  return [after, tables]
}

test('the state at a time has its commits although segments without them are later', {
  tags: ['slow'],
}, async () => {
  await increment(20n, 0, [10, 11])
  await increment(40n, 2, [])
  await increment(60n, 2, [25, 30, 50])
  await increment(80n, 5, [])
  expect(await stateAt(10n)).toEqual([1, 0])
  expect(await stateAt(24n)).toEqual([2, 0])
  expect(await stateAt(25n)).toEqual([3, 1])
  expect(await stateAt(45n)).toEqual([4, 1])
  expect(await stateAt(70n)).toEqual([5, 1])
  expect(await stateAt(80n)).toEqual([5, 2])
})

test('a commit that a segment before has already ends no time', async () => {
  await increment(20n, 0, [10])
  // Written again after a failure.
  await increment(40n, 0, [10, 15])
  await increment(60n, 2, [35])
  expect(await stateAt(14n)).toEqual([1, 0])
  expect(await stateAt(36n)).toEqual([3, 0])
})
