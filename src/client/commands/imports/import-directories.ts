/** The directory that `svc import` wrote, as later commands read it. It may have been edited. */
import {
  closeSync,
  createReadStream,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../../../errors/fault.ts'
import { isContentType, isObjectKey } from '../../../value/files/files.ts'
import { isId, isTableName } from '../../../value/ids.ts'
import { isJsonObject, type Json, parseStrictJson } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { explanation } from '../../explanations.ts'
import { readIfPresent, withPath } from '../../files.ts'
import { linesOf } from '../../imports/archives/lines.ts'

const REPORT_BYTES_MAX = 64 * 1024 * 1024
const STORED_BYTES_MAX = 256 * 1024 * 1024
const PRIVATE_FILE = 0o600
const DIGEST = /^[0-9a-f]{64}$/
/** The IDs that the server gave to the files, by those of the manifest. */
const STORED = 'files/stored.json'
const MANIFEST = 'files/manifest.jsonl'

export interface ImportedTable {
  readonly table: string
  readonly documents: number
  readonly digest: string
}

export interface ManifestFile {
  /** The ID that documents have until the file is stored. */
  readonly fileId: string
  /** The path inside the directory. */
  readonly path: string
  readonly key: string
  readonly contentType: string
  readonly size: number
  readonly sha256: string
}

/** Reads the tables of `report.json`. Throws CLIENT_FILE_FAILED. */
export function readTables(directory: string): readonly ImportedTable[] {
  const json = readJson(join(directory, 'report.json'), REPORT_BYTES_MAX)
  const collections = isJsonObject(json) && json.version === 1 ? json.collections : null
  if (!Array.isArray(collections)) throw noImport(directory)
  return collections.map((item) => {
    const { table, documents, digest } = isJsonObject(item) ? item : {}
    const isTable =
      typeof table === 'string' &&
      isTableName(table) &&
      Number.isSafeInteger(documents) &&
      typeof digest === 'string' &&
      DIGEST.test(digest)
    if (!isTable) throw noImport(directory)
    return { table, documents: documents as number, digest }
  })
}

/** Reads the files of the manifest; none where there is no manifest. */
export async function readManifest(directory: string): Promise<readonly ManifestFile[]> {
  const path = join(directory, MANIFEST)
  const files: ManifestFile[] = []
  const content = openContent(path)
  if (content === null) return files
  for await (const line of linesOf(MANIFEST, content)) {
    files.push(manifestFile(parsed(path, line.content), path))
  }
  return files
}

function manifestFile(json: Json, path: string): ManifestFile {
  const { fileId, path: file, key, contentType, size, sha256 } = isJsonObject(json) ? json : {}
  const isFile =
    isId('fil', fileId) &&
    file === `files/${fileId}` &&
    typeof key === 'string' &&
    isObjectKey(key) &&
    typeof contentType === 'string' &&
    isContentType(contentType) &&
    Number.isSafeInteger(size) &&
    typeof sha256 === 'string' &&
    DIGEST.test(sha256)
  if (isFile) return { fileId, path: file, key, contentType, size: size as number, sha256 }
  throw new Fault('CLIENT_FILE_FAILED', { detail: `${path} has a line that is no file.` })
}

/** Returns the IDs that the server gave to files, by those of the manifest. */
export function readStoredIds(directory: string): ReadonlyMap<string, string> {
  const path = join(directory, STORED)
  const json = readJson(path, STORED_BYTES_MAX, {})
  const entries = Object.entries(isJsonObject(json) ? json : { '': null })
  if (entries.every((pair) => pair.every((id) => isId('fil', id)))) {
    return new Map(entries as [string, string][])
  }
  throw new Fault('CLIENT_FILE_FAILED', { detail: `${path} has no IDs of files.` })
}

export async function writeStoredIds(
  directory: string,
  ids: ReadonlyMap<string, string>,
): Promise<void> {
  await replaceFile(join(directory, STORED), async (write) => {
    write(`${JSON.stringify(Object.fromEntries(ids))}\n`)
  })
}

/** Replaces IDs of files in the documents of a table. */
export async function replaceFileIds(
  directory: string,
  table: string,
  ids: ReadonlyMap<string, string>,
): Promise<void> {
  const name = `data/${table}.jsonl`
  const path = join(directory, name)
  const content = openContent(path)
  if (content === null) throw noImport(directory)
  await replaceFile(path, async (write) => {
    for await (const line of linesOf(name, content)) {
      const text = Buffer.from(line.content).toString('utf8')
      write(`${text.replace(FILE_ID, (_, id: string) => `"${ids.get(id) ?? id}"`)}\n`)
    }
  })
}

/** A whole text that is the ID of a file. */
const FILE_ID = /"(fil_[0-7][0-9A-HJKMNP-TV-Z]{25})"/g

/** Replaces a file when its new content is whole. */
async function replaceFile(
  path: string,
  writeAll: (write: (text: string) => void) => Promise<void>,
): Promise<void> {
  const temporary = `${path}.new`
  rmSync(temporary, { force: true })
  const file = withPath(temporary, () => openSync(temporary, 'wx', PRIVATE_FILE))
  try {
    await writeAll((text) => {
      const bytes = Buffer.from(text)
      withPath(temporary, () => {
        for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
      })
    })
    withPath(temporary, () => fsyncSync(file))
  } finally {
    closeSync(file)
  }
  withPath(path, () => renameSync(temporary, path))
}

function openContent(path: string): AsyncIterable<Uint8Array> | null {
  try {
    const file = openSync(path, 'r')
    return createReadStream('', { fd: file }) as AsyncIterable<Uint8Array>
  } catch {
    return null
  }
}

function readJson(path: string, bytesMax: number, absent?: Json): Json {
  const bytes = readIfPresent(path, bytesMax)
  if (bytes !== null) return parsed(path, bytes)
  if (absent !== undefined) return absent
  throw new Fault('CLIENT_FILE_FAILED', { detail: `The file ${path} does not exist.` })
}

function parsed(path: string, bytes: Uint8Array): Json {
  try {
    return parseStrictJson(bytes, { depthMax: 16, entriesMax: 1_000_000 })
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('CLIENT_FILE_FAILED', { detail: `${path} is no JSON.`, cause: error })
  }
}

function noImport(directory: string): Fault {
  return new Fault('CLIENT_FILE_FAILED', {
    detail: `${directory} is no directory that svc import wrote.`,
    cause: explanation({ next: 'Name the directory of --out of `svc import`.' }),
  })
}
