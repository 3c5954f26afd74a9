/** Compares transfers of files with a bare server on the same disk, and calls beside transfers. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../../src/errors/assert.ts'
import { type BaselineServer, baselineServer } from '../baselines/processes.ts'
import { call, id, int64, queryBody } from '../calls.ts'
import { type Comparison, type Figure, inTurns, type Measured, measuredBy } from '../figure.ts'
import type { BenchInstallation, Target } from '../installation.ts'
import { type LoadResult, load, repeatedly } from '../load.ts'
import { fillTable, readItem } from '../tables.ts'

const MIB = 1024 ** 2
const LARGE = 1024 * MIB
const SMALL = 16 * 1024
const CONNECTIONS = 64
const TRANSFERS = 8
/** Bytes a second of a transfer: 100 Mbit/s, as far-away clients have. */
const PACE = 12_500_000
const CURL = '/usr/bin/curl'
const TYPE = { 'content-type': 'application/octet-stream' }

interface Grant {
  readonly path: string
  readonly token: string
}

let uploads = 0
/** The file of the bare server, which requires no token. */
const BARE_GRANT: Grant = { path: '/file', token: '' }

export const FILES: readonly Figure[] = [
  bareFigure(
    { name: 'upload of 1 GiB', baseline: 'bare file server, same disk writes', ratioMin: 0.7 },
    async (installation, { port, source }) => ({
      candidate: async () => {
        const grant = await grantUpload(installation, LARGE)
        return rateOf(() => put(installation.application.port, Bun.file(source), grant))
      },
      baseline: () => rateOf(() => put(port, Bun.file(source), BARE_GRANT)),
    }),
  ),
  bareFigure(
    { name: 'download of 1 GiB', baseline: 'bare file server', ratioMin: 0.7 },
    async (installation, { port, source }) => {
      const grant = await grantDownload(installation, source)
      await put(port, Bun.file(source), BARE_GRANT)
      return {
        candidate: () => rateOf(() => get(installation.application.port, grant)),
        baseline: () => rateOf(() => get(port, BARE_GRANT)),
      }
    },
  ),
  bareFigure(
    { name: 'downloads of 16 KiB', baseline: 'bare file server', ratioMin: 0.4 },
    async (installation, { port, directory }) => {
      const source = sourceFile(directory, SMALL)
      const { path, token } = await grantDownload(installation, source)
      await put(port, Bun.file(source), BARE_GRANT)
      const common = { method: 'GET', connections: CONNECTIONS } as const
      const to = { port: installation.application.port, path, headers: bearer(token) }
      const bare = { port, path: BARE_GRANT.path, headers: {} }
      return {
        candidate: (seconds) => load({ ...common, ...to, seconds }),
        baseline: (seconds) => load({ ...common, ...bare, seconds }),
      }
    },
  ),
  bareFigure(
    {
      name: `uploads of 16 KiB by grant, ${CONNECTIONS} in flight`,
      baseline: 'bare file server, same disk writes',
      ratioMin: 0.3,
    },
    async (installation, { port }) => ({
      // Each upload has bytes of its own, since equal contents are stored once.
      candidate: (seconds) =>
        repeatedly({ connections: CONNECTIONS, seconds }, async () => {
          const grant = await grantUpload(installation, SMALL)
          await put(installation.application.port, randomBytes(SMALL), grant)
        }),
      baseline: (seconds) =>
        repeatedly({ connections: CONNECTIONS, seconds }, () =>
          put(port, randomBytes(SMALL), { ...BARE_GRANT, path: `/file-${uploads++}` }),
        ),
    }),
  ),
  besideFigure('of 100 Mbit/s', PACE),
  besideFigure('at full speed', null),
]

interface Bare extends Pick<BaselineServer, 'port'> {
  readonly directory: string
  /** Path of a file of 1 GiB. */
  readonly source: string
}

/** Runs the measurement beside a bare server on the disk of the installation. */
async function beside(
  { directory }: BenchInstallation,
  measure: (bare: Bare) => Promise<Measured>,
): Promise<Measured> {
  const folder = join(directory, 'bare')
  mkdirSync(folder, { recursive: true })
  const source = sourceFile(directory, LARGE)
  const server = await baselineServer('files', { DIRECTORY: folder })
  try {
    return await measure({ port: server.port, directory, source })
  } finally {
    server.stop()
  }
}

/** Compares transfers of the server with those of a bare server. */
function bareFigure(
  named: Pick<Figure, 'name' | 'baseline' | 'ratioMin'>,
  compare: (installation: BenchInstallation, bare: Bare) => Promise<Comparison>,
): Figure {
  return {
    ...named,
    documents: 'sqlite',
    measure: (installation, options) =>
      beside(installation, async (bare) => inTurns(await compare(installation, bare), options)),
  }
}

/** `pace` is in bytes a second for each transfer; null for as fast as it goes. */
function besideFigure(speed: string, pace: number | null): Figure {
  return {
    name: `p99 of Queries beside ${TRANSFERS} transfers ${speed}`,
    baseline: 'the same Queries alone',
    ratioMin: 1 / 1.5,
    documents: 'sqlite',
    measure: (installation, { warmUpSeconds, seconds, rounds }) =>
      beside(installation, async ({ source }) => {
        await fillTable(installation, 'items')
        const to = installation.application
        const queries = (duration: number) =>
          load({ ...to, path: '/v1/query', body: readItem, connections: 8, seconds: duration })
        await queries(warmUpSeconds)
        const [candidate, baselines]: [LoadResult[], LoadResult[]] = [[], []]
        for (let round = 0; round < rounds; round++) {
          baselines.push(await queries(seconds))
          const transfers = { source, pace }
          candidate.push(await besideTransfers(installation, transfers, () => queries(seconds)))
        }
        return measuredBy({ candidate, baselines }, (sample, baseline) => {
          return baseline.p99Micros / sample.p99Micros
        })
      }),
  }
}

/**
 * Runs `work` while half of the transfers upload and the others download. Their clients are
 * processes: in this one they would delay the Queries that are measured.
 */
async function besideTransfers<T>(
  installation: BenchInstallation,
  { source, pace }: { readonly source: string; readonly pace: number | null },
  work: () => Promise<T>,
): Promise<T> {
  const { port } = installation.application
  const download = await grantDownload(installation, source)
  const over = new AbortController()
  const limit = pace === null ? [] : ['--limit-rate', String(pace)]
  const transfers = Array.from({ length: TRANSFERS }, async (_, i) => {
    while (!over.signal.aborted) {
      const isUpload = i % 2 === 0
      const { path, token } = isUpload ? await grantUpload(installation, LARGE) : download
      const type = ['-H', `Content-Type: ${TYPE['content-type']}`, '-T', source]
      const parameters = ['-sS', ...limit, '-H', `Authorization: Bearer ${token}`]
      const url = `http://127.0.0.1:${port}${path}`
      parameters.push(...(isUpload ? type : []), '-o', '/dev/null', url)
      await ended(spawn(CURL, parameters, { signal: over.signal, stdio: 'ignore' }))
    }
  })
  try {
    return await work()
  } finally {
    over.abort()
    await Promise.allSettled(transfers)
  }
}

/** Resolves when the process has ended, whether or not it was killed. */
function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('close', () => resolve())
    child.on('error', () => undefined)
  })
}

const sources = new Map<string, string>()

/** Writes a file of random bytes, once for each directory and length. */
function sourceFile(directory: string, bytes: number): string {
  const path = join(directory, `source-${bytes}`)
  if (sources.has(path)) return path
  const block = randomBytes(Math.min(bytes, 8 * MIB))
  const file = openSync(path, 'wx')
  for (let written = 0; written < bytes; ) written += writeSync(file, block)
  sources.set(path, path)
  return path
}

/** Measures one transfer of 1 GiB in MiB a second. */
async function rateOf(transfer: () => Promise<void>): Promise<LoadResult> {
  const started = performance.now()
  await transfer()
  const millis = performance.now() - started
  const micros = millis * 1000
  const perSecond = LARGE / MIB / (millis / 1000)
  return { perSecond, p50Micros: micros, p99Micros: micros, failures: 0, firstFailure: null }
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` })

async function put(
  port: number,
  body: Blob | Buffer<ArrayBuffer>,
  { path, token }: Grant,
): Promise<void> {
  const headers = { ...bearer(token), ...TYPE }
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'PUT', headers, body })
  assert(reply.status === 201, `upload: ${reply.status} ${await reply.text()}`)
}

async function get(port: number, { path, token }: Grant): Promise<void> {
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, { headers: bearer(token) })
  assert(reply.status === 200, `download: ${reply.status}`)
  for await (const _ of reply.body!) {
    // The bytes are discarded.
  }
}

async function grantUpload({ application }: BenchInstallation, bytes: number): Promise<Grant> {
  const body = queryBody('files.upload', { bytes: int64(bytes) })
  return grantOf(await call(application, '/v1/action', body))
}

const stored = new Map<string, Promise<string>>()

/** Uploads the file once, and returns a new grant to download it. */
async function grantDownload(installation: BenchInstallation, source: string): Promise<Grant> {
  const { application } = installation
  let fileId = stored.get(source)
  if (fileId === undefined) {
    fileId = store(installation, application, source)
    stored.set(source, fileId)
  }
  const body = queryBody('files.download', { file: id(await fileId) })
  return grantOf(await call(application, '/v1/query', body))
}

async function store(
  installation: BenchInstallation,
  { port }: Target,
  source: string,
): Promise<string> {
  const { path, token } = await grantUpload(installation, Bun.file(source).size)
  const headers = { ...bearer(token), ...TYPE }
  const body = Bun.file(source)
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'PUT', headers, body })
  const { file } = (await reply.json()) as { file: { fileId: string } }
  return file.fileId
}

/** Reads the fields of a grant from the tagged object. */
function grantOf(result: { readonly value: readonly { key: string; value: { value: string } }[] }) {
  const fields = new Map(result.value.map(({ key, value }) => [key, value.value]))
  return { path: fields.get('path')!, token: fields.get('token')! }
}
