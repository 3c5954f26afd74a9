import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import {
  readManifest,
  readStoredIds,
  readTables,
  replaceFileIds,
  writeStoredIds,
} from './import-directories.ts'

const [A, B, C] = ['A', 'B', 'C'].map((letter) => `fil_0000000000000000000000000${letter}`)
const DIGEST = '0'.repeat(64)

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-imported-'))
  const made = directory
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  mkdirSync(join(directory, 'data'))
  mkdirSync(join(directory, 'files'))
})

const write = (name: string, content: unknown) =>
  writeFileSync(
    join(directory, name),
    typeof content === 'string' ? content : JSON.stringify(content),
  )

describe('the directory of an import', () => {
  it.each([
    ['has no report', null],
    ['has a report that is not JSON', '{'],
    ['has a table whose name leaves the directory', table('../../etc/passwd')],
    ['has a table without a digest', { version: 1, collections: [{ table: 'a', documents: 1 }] }],
    ['has a report of another version', { ...table('a'), version: 2 }],
  ])('the directory of an import is rejected if it %s', (_, report) => {
    if (report !== null) write('report.json', report)
    expect(() => readTables(directory)).toThrow(
      expect.objectContaining({ code: 'CLIENT_FILE_FAILED' }),
    )
  })

  it.each([
    ['the path of another file', { path: '../../etc/passwd' }],
    ['a key that is too long', { key: 'x'.repeat(1_025) }],
    ['a type that is not one', { contentType: 'a\r\nb: c' }],
    ['an ID of something else', { fileId: 'notes_00000000000000000000000000' }],
  ])('the directory of an import is rejected if its manifest has %s', async (_, change) => {
    write('files/manifest.jsonl', `${JSON.stringify({ ...file(A!), ...change })}\n`)
    await expect(readManifest(directory)).rejects.toMatchObject({ code: 'CLIENT_FILE_FAILED' })
  })

  it('the directory of an import is read as it was written', async () => {
    write('report.json', table('notes'))
    write('files/manifest.jsonl', `${JSON.stringify(file(A!))}\n`)
    expect(readTables(directory)).toEqual([{ table: 'notes', documents: 1, digest: DIGEST }])
    expect(await readManifest(directory)).toEqual([file(A!)])
    rmSync(join(directory, 'files/manifest.jsonl'))
    expect(await readManifest(directory)).toEqual([])
  })
})

it('the IDs of stored files replace those of the manifest, and only whole texts', async () => {
  const lines = [`{"_id":"notes_1","file":"${A}","text":"see ${A}","all":["${A}","${B}"]}`, '{}']
  write('data/notes.jsonl', `${lines.join('\n')}\n`)
  expect(readStoredIds(directory)).toEqual(new Map())
  await replaceFileIds(directory, 'notes', new Map([[A!, C!]]))
  await writeStoredIds(directory, new Map([[A!, C!]]))
  const replaced = readFileSync(join(directory, 'data/notes.jsonl'), 'utf8')
  expect(replaced).toBe(
    `{"_id":"notes_1","file":"${C}","text":"see ${A}","all":["${C}","${B}"]}\n{}\n`,
  )
  expect(readStoredIds(directory)).toEqual(new Map([[A, C]]))
  write('files/stored.json', { [A!]: 'notes_1' })
  expect(() => readStoredIds(directory)).toThrow()
})

function table(name: string) {
  return { version: 1, collections: [{ table: name, documents: 1, digest: DIGEST }] }
}

function file(fileId: string) {
  return {
    fileId,
    path: `files/${fileId}`,
    key: 'convex/a.png',
    contentType: 'image/png',
    size: 3,
    sha256: DIGEST,
  }
}
