/**
 * Reads the files of a release within bounds of bytes and of time without progress. Redirects are
 * followed, as stores of releases need it, to permitted URLs alone.
 */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault, isFault } from '../../errors/fault.ts'
import { errorCode } from '../files.ts'
import { ConnectFailure } from '../network/connections.ts'
import { type Address, isPermitted } from './addresses.ts'
import { undelivered } from './faults.ts'

/** Time without a byte after which a download fails. */
const STALL_MS = 30_000
const REDIRECTS_MAX = 5
const READ_BYTES = 65_536

export interface Source {
  readonly address: Address
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly signal: AbortSignal
  /** STALL_MS where absent. */
  readonly stallMs?: number
}

/** Reads a small file; null if the release has none. Throws CLIENT_UPGRADE_UNDELIVERED. */
export async function readSmall(
  source: Source,
  name: string,
  bytesMax: number,
): Promise<Buffer | null> {
  const chunks: Uint8Array[] = []
  const isThere = await read(source, name, {
    bytesMax,
    take: async (each) => void chunks.push(each),
  })
  return isThere ? Buffer.concat(chunks) : null
}

/**
 * Writes a file of the release to a new file that only this user can read. Returns its SHA-256;
 * null if the release has none. Throws CLIENT_UPGRADE_UNDELIVERED.
 */
export async function download(
  source: Source,
  name: string,
  options: { readonly to: string; readonly bytesMax: number; onBytes(total: number): void },
): Promise<string | null> {
  const { to, bytesMax, onBytes } = options
  const hash = createHash('sha256')
  const file = await open(to, 'wx', 0o600)
  let total = 0
  try {
    const take = async (chunk: Uint8Array): Promise<void> => {
      hash.update(chunk)
      await writeWhole(file, chunk)
      total += chunk.length
      onBytes(total)
    }
    return (await read(source, name, { bytesMax, take })) ? hash.digest('hex') : null
  } finally {
    await file.close()
  }
}

async function writeWhole(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) {
    at += (await file.write(chunk, at, chunk.length - at)).bytesWritten
  }
}

interface Reading {
  readonly bytesMax: number
  take(chunk: Uint8Array): Promise<void>
}

/** Returns false if the release has no such file. */
async function read(source: Source, name: string, reading: Reading): Promise<boolean> {
  const { address, signal } = source
  if (address.kind === 'directory') return readLocal(join(address.path, name), name, reading)
  const stall = new AbortController()
  const stallMs = source.stallMs ?? STALL_MS
  const late = (): void => stall.abort(new DOMException('no progress', 'TimeoutError'))
  let timer = setTimeout(late, stallMs)
  try {
    const either = AbortSignal.any([signal, stall.signal])
    const response = await follow(source, `${address.url}/${name}`, either)
    if (response.status === 404) {
      await response.body?.cancel()
      return false
    }
    if (response.status !== 200) {
      await response.body?.cancel()
      throw undelivered(`${address.url}/${name} answered HTTP ${response.status}.`)
    }
    await takeAll(response.body ?? [], name, {
      ...reading,
      take: async (chunk) => {
        clearTimeout(timer)
        await reading.take(chunk)
        timer = setTimeout(late, stallMs)
      },
    })
    return true
  } catch (error) {
    if (signal.aborted) throw new Fault('CLIENT_INTERRUPTED')
    if (isFault(error) || isLocal(error)) throw error
    const at = `${address.url}/${name}`
    if (error instanceof ConnectFailure) {
      throw undelivered(`${at} cannot be reached: ${error.message}.`, error)
    }
    const reason = stall.signal.aborted ? `no byte came for ${stallMs / 1000} s` : reasonOf(error)
    throw undelivered(`${at} was cut: ${reason}.`, error)
  } finally {
    clearTimeout(timer)
  }
}

async function takeAll(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  name: string,
  { bytesMax, take }: Reading,
): Promise<void> {
  let total = 0
  for await (const chunk of chunks) {
    total += chunk.length
    if (total > bytesMax) throw undelivered(`${name} is larger than ${bytesMax} bytes.`)
    await take(chunk)
  }
}

/** Returns the response behind all redirects. */
async function follow(source: Source, first: string, signal: AbortSignal): Promise<Response> {
  let url = first
  for (let hops = 0; hops <= REDIRECTS_MAX; hops++) {
    const response = await source.fetch(url, { signal })
    const location = response.headers.get('location')
    if (response.status < 300 || response.status > 399 || location === null) return response
    await response.body?.cancel()
    const next = URL.canParse(location, url) ? new URL(location, url) : null
    // A server of the network must not send the client to a port of this machine.
    const descends = url.startsWith('https:') && next?.protocol !== 'https:'
    if (next === null || !isPermitted(next) || descends) {
      throw undelivered(`${first} redirects to an address that is not https.`)
    }
    url = next.href
  }
  throw undelivered(`${first} redirects more than ${REDIRECTS_MAX} times.`)
}

/** Reads a regular file of this machine. */
async function readLocal(path: string, name: string, reading: Reading): Promise<boolean> {
  let file: FileHandle
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw undelivered(`${path} cannot be read: ${reasonOf(error)}.`, error)
  }
  try {
    if (!(await file.stat()).isFile()) throw undelivered(`${path} is not a regular file.`)
    await takeAll(chunksOf(file), name, reading)
    return true
  } finally {
    await file.close()
  }
}

/**
 * The bytes of a file. A stream of its descriptor does not serve: Bun's closes a descriptor that
 * another owns when the reader ends before the file.
 */
async function* chunksOf(file: FileHandle): AsyncGenerator<Uint8Array, void, undefined> {
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
  }
}

/** Failures of the file that is written, which no other address repairs. */
function isLocal(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'EFBIG'].includes(errorCode(error) ?? '')
}

function reasonOf(error: unknown): string {
  return errorCode(error) ?? (error instanceof Error ? error.message : 'unknown failure')
}
