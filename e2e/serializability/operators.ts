/**
 * Operators that replace the registers of the workload by Data Admin while Functions write them.
 * A replacement under the revision that was read is a transaction that read that version.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Application, int64, type Json, object, operationId } from '../application.ts'
import { argv } from '../argv.ts'
import { CELLS, type Transaction } from './history.ts'
import { SeededRandom } from './random.ts'

export interface OperatorOptions {
  readonly app: Application
  readonly cells: readonly string[]
  readonly seed: number
  /** Number of the first transaction; no other has it or a later one. */
  readonly first: number
  readonly client: number
  /** Advances the logical time. */
  readonly tick: () => number
  readonly isDone: () => boolean
}

export interface OperatorHistory {
  readonly transactions: readonly Transaction[]
  readonly conflicts: number
  readonly failures: readonly string[]
}

const PAUSE_MILLIS = 20
/** Time limit for a reply, which is longer than a request waits while the server starts. */
const ANSWER_MILLIS_MAX = 60_000
const TIMEOUT_MILLIS = 300_000
const FINAL = new Set([200, 400, 403, 404, 409, 422])

interface Outcome {
  readonly status: number
  readonly body: Json
}

export async function replaceCells(options: OperatorOptions): Promise<OperatorHistory> {
  const { cells, seed, first, client, tick, isDone } = options
  const transactions: Transaction[] = []
  const failures: string[] = []
  let conflicts = 0
  for (let number = first; !isDone(); number++) {
    const key = new SeededRandom(seed, number).below(CELLS)
    const read = await untilFinal(options, cells[key]!)
    const { revision, value } = read.body.document ?? failed(read)
    // Unique in the run, as those of workload.ts.
    const next = number * 8 + 1
    const invoked = tick()
    const body = {
      target: 'channel:production',
      expectedRevision: revision,
      value: object({ value: int64(next) }),
      changedAtMicros: String(Date.now() * 1_000),
    }
    const outcome = await untilFinal(options, cells[key]!, body)
    if (outcome.status === 409) {
      conflicts += 1
      continue
    }
    if (outcome.status !== 200) failures.push(`T${number} got the reply ${outcome.status}`)
    const before = Number(value.value[0].value.value)
    transactions.push({
      number,
      client,
      invoked,
      completed: tick(),
      kind: 'mutation',
      attempts: 1,
      operations: [{ kind: 'write', key, value: next, how: 'replace' }],
      answers: outcome.status === 200 ? [before === 0 ? [] : [before]] : null,
      outcome: outcome.status === 200 ? 'committed' : 'aborted',
      commitSequence: outcome.status === 200 ? Number(outcome.body.document.revision) : null,
      snapshotSequence: null,
    })
  }
  return { transactions, conflicts, failures }
}

function failed({ status, body }: Outcome): never {
  throw new Error(`an operator got the reply ${status} ${JSON.stringify(body)}`)
}

/** Reads or replaces a cell, and repeats the request until its reply is final. */
async function untilFinal({ app }: OperatorOptions, cell: string, body?: Json): Promise<Outcome> {
  const key = operationId()
  const deadline = performance.now() + TIMEOUT_MILLIS
  for (;;) {
    const outcome = await send(app, cell, key, body).catch(unlessTimedOut)
    if (outcome !== null && FINAL.has(outcome.status)) return outcome
    if (outcome?.status === 401) await app.svc(argv`health ${remoteOf(app)}`)
    if (performance.now() > deadline) failed(outcome ?? { status: 0, body: null })
    await delay(PAUSE_MILLIS)
  }
}

/** Returns null for a request whose server ended before it answered. */
function unlessTimedOut(error: Error): null {
  if (error.name === 'TimeoutError') throw new Error('an operator got no answer in time')
  return null
}

async function send(app: Application, cell: string, key: string, body?: Json): Promise<Outcome> {
  const { installation, server } = app
  const config = join(installation.directory, 'config/credentials-v1.json')
  const root = JSON.parse(readFileSync(join(installation.productRoot, 'service.json'), 'utf8'))
  const base = `/v1/projects/${root.projectId}/environments/${root.environmentId}`
  const query = body === undefined ? '?target=channel%3Aproduction' : ''
  const reply = await fetch(`${server.management}${base}/data/documents/cells/${cell}${query}`, {
    method: body === undefined ? 'GET' : 'PUT',
    headers: {
      authorization: `Bearer ${JSON.parse(readFileSync(config, 'utf8')).accessToken}`,
      ...(body !== undefined && { 'content-type': 'application/json', 'idempotency-key': key }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(ANSWER_MILLIS_MAX),
  })
  return { status: reply.status, body: await reply.json() }
}

function remoteOf({ installation }: Application): readonly string[] {
  return argv`--remote --root ${installation.productRoot}`
}
