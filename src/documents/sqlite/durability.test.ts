import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { documentId, whole } from '../../../testing/documents/store-fixtures.ts'
import { openSqliteDocuments } from './stores.ts'

const KILLS = 20
const INDEX = 1

let directory: string
let path: string
let script: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'documents-'))
  path = join(directory, 'documents.db')
  script = join(directory, 'child.ts')
  writeFileSync(script, CHILD)
})

afterEach(() => rmSync(directory, { recursive: true }))

/** Commits batches without a pause and prints each sequence after it was acknowledged. */
const CHILD = `
import { writeSync } from 'node:fs'
const { openSqliteDocuments } = await import(process.argv[2])
const { indexKey } = await import(process.argv[3])
const store = await openSqliteDocuments(process.argv[4])
const [index] = await store.ensureIndexes([{ table: 'notes', fields: ['n'] }])
await store.buildIndex(index.id)
let sequence = store.latestSequence
for (;;) {
  const transactions = []
  for (let i = 0; i <= sequence % 7; i++) {
    sequence += 1
    const id = 'notes_' + String(sequence).padStart(26, '0')
    const fields = new Map([['n', BigInt(sequence)]])
    const key = indexKey(index, { id, createdAtMicros: 0n, fields })
    const text = JSON.stringify({ n: { $i: String(sequence) } })
    const entries = [{ index: index.id, key, live: true }]
    const operation = {
      operationId: 'opn_' + String(sequence).padStart(26, '0'),
      fingerprint: new Uint8Array(32),
      commitSequence: sequence,
      releaseId: 'rel_1',
      function: 'notes.add',
      result: '{"type":"null"}',
      attempts: 1,
      createdAtMicros: 0n,
    }
    const writes = [{ id, createdAtMicros: 0n, text, entries }]
    transactions.push({ sequence, atMicros: 0n, writes, operation })
  }
  try {
    await store.commit({ transactions })
  } catch (error) {
    writeSync(1, error.code + ' ' + store.status.state + '\\n')
    process.exit(0)
  }
  writeSync(1, sequence + '\\n')
}
`

function childArguments(script: string, path: string): string[] {
  const modules = ['stores.ts', '../keys.ts'].map((name) => join(import.meta.dirname, name))
  return [script, ...modules, path]
}

async function acknowledgedUntilKilled(script: string, path: string, millis: number) {
  const child = spawn(process.execPath, childArguments(script, path), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    // The time starts with the first acknowledged commit.
    if (output === '') setTimeout(() => child.kill('SIGKILL'), millis)
    output += chunk.toString()
  })
  const [, signal] = await once(child, 'close')
  expect(signal).toBe('SIGKILL')
  const lines = output.split('\n')
  // The text after the last line break may be incomplete.
  return Number(lines.at(-2))
}

/** Reads everything back: the latest sequence determines all documents, keys and operations. */
async function sequenceOfWholeStore(): Promise<number> {
  const store = await openSqliteDocuments(path)
  const latest = store.latestSequence
  const { documents } = await store.range(whole(INDEX, latest))
  expect(documents.map(({ document }) => document.sequence)).toEqual(
    Array.from({ length: latest }, (_, i) => i + 1),
  )
  for (let sequence = 1; sequence <= latest; sequence++) {
    expect(await store.operation(documentId('opn', sequence))).not.toBeNull()
  }
  expect(await store.operation(documentId('opn', latest + 1))).toBeNull()
  await store.close()
  return latest
}

test('acknowledged commits survive kill -9 at any moment, and batches are atomic', {
  tags: ['slow'],
}, async () => {
  // Each child commits without a pause until it is killed, and the next one continues its file.
  for (let kill = 0; kill < KILLS; kill++) {
    const acknowledged = await acknowledgedUntilKilled(script, path, (kill * 37) % 150)
    expect(await sequenceOfWholeStore()).toBeGreaterThanOrEqual(acknowledged)
  }
})

/** Runs a child whose files can only be written up to some 2 MB. */
async function linesOfLimited(args: readonly string[]): Promise<string[]> {
  const limited = `trap '' XFSZ; ulimit -f 2000; exec "$0" "$@"`
  const child = spawn('sh', ['-c', limited, process.execPath, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  await once(child, 'close')
  return output.trimEnd().split('\n')
}

test('a commit whose write fails stores nothing, and the store stays open', {
  tags: ['slow'],
}, async () => {
  // The limit makes a write inside COMMIT fail as on a read-only disk.
  const lines = await linesOfLimited(childArguments(script, path))
  expect(lines.at(-1)).toBe('UNAVAILABLE open')
  expect(await sequenceOfWholeStore()).toBe(Number(lines.at(-2)))
})

const CLOSING_CHILD = `
import { writeSync } from 'node:fs'
const { openSqliteDocuments } = await import(process.argv[2])
const store = await openSqliteDocuments(process.argv[4])
const id = 'notes_00000000000000000000000000'
const writes = [{ id, createdAtMicros: 0n, text: '{}', entries: [] }]
await store.commit({ transactions: [{ sequence: 101, atMicros: 0n, writes }] })
await store.close().then(() => writeSync(1, 'closed'), (error) => writeSync(1, error.detail))
process.exit(0)
`

test('a store whose log cannot be checkpointed closes, and opens completely', async () => {
  // The pages that the next commit changes are after one long document, beyond the limit.
  const before = await openSqliteDocuments(path)
  const transactions = Array.from({ length: 100 }, (_, i) => {
    const text = JSON.stringify('x'.repeat(i === 0 ? 3_000_000 : 1_000))
    const writes = [{ id: documentId('notes', i + 1), createdAtMicros: 0n, text, entries: [] }]
    return { sequence: i + 1, atMicros: 0n, writes }
  })
  await before.commit({ transactions })
  await before.close()
  writeFileSync(script, CLOSING_CHILD)
  expect(await linesOfLimited(childArguments(script, path))).toEqual(['closed'])
  const after = await openSqliteDocuments(path)
  expect((await after.read(documentId('notes', 0), 101))?.text).toBe('{}')
  await after.close()
})
