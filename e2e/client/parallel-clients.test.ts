/**
 * Many `svc` processes with one credentials file, against the real server.
 *
 * @module-tag slow
 */
import { spawn } from 'node:child_process'
import { closeSync, fstatSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SEED } from '../../testing/seeds.ts'
import type { ServerProcess } from '../../testing/servers/server-process.ts'
import { argv } from '../argv.ts'
import { CLIENT, createInstallation, type Installation, run, SERVER } from '../harness.ts'

const PROCESSES = 16
/** Delay of requests to the server, so that the other processes overtake one that refreshes. */
const DELAY_MS = 400
const ROUNDS = process.env.SVC_TEST_LONG === '1' ? 20 : 1

let installation: Installation
let server: ServerProcess
let slow: Server
let database: Client
/** Duration of a round. A process is killed at a random moment of it. */
let roundMs = 1_000

beforeAll(async () => {
  installation = await createInstallation()
  server = await installation.start()
  slow = createServer((client) => {
    const upstream = connect(Number(new URL(server.management).port), '127.0.0.1')
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined)
      socket.on('close', () => [client, upstream].map((each) => each.destroy()))
    }
    client.on('data', (bytes) => setTimeout(() => upstream.write(bytes), DELAY_MS))
    upstream.pipe(client)
  })
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve))
  const url = installation.environment.SERVICE_IDENTITY_DATABASE_URL_FILE!
  database = new Client({ connectionString: readFileSync(url, 'utf8') })
  await database.connect()
  await login(readFileSync(installation.codeFile, 'utf8').trim())
})

afterAll(async () => {
  slow?.close()
  await database?.end()
  await installation?.dispose()
})

const credentials = (): string => join(installation.directory, 'config/credentials-v1.json')
const stored = () => JSON.parse(readFileSync(credentials(), 'utf8'))

async function login(code: string): Promise<void> {
  const { port } = slow.address() as AddressInfo
  const args = argv`login --url http://127.0.0.1:${port} --code-env CODE`
  const { status, stderr } = await installation.svc(args, { CODE: code })
  expect([status, stderr]).toEqual([0, expect.not.stringContaining('error')])
}

/** Expires the access token for every process that reads the file from now on. */
function expire(): void {
  const content = JSON.stringify({ ...stored(), accessExpiresAtMicros: '1' })
  writeFileSync(credentials(), content, { mode: 0o600 })
}

interface Started {
  kill(): void
  /** Exit status; null for a killed process. */
  readonly status: Promise<number | null>
}

function startWhoami(): Started {
  const child = spawn(CLIENT, argv`whoami --json`, {
    cwd: join(installation.directory, 'run'),
    env: { ...installation.clientEnvironment },
    stdio: 'ignore',
  })
  return {
    kill: () => child.kill('SIGKILL'),
    status: new Promise((resolve) => child.once('close', (status) => resolve(status))),
  }
}

/** Checks the file repeatedly until `work` ends. Returns the number of checks. */
async function checkingFile(work: Promise<unknown>): Promise<number> {
  let done = false
  const finished = work.finally(() => {
    done = true
  })
  let checks = 0
  for (; !done; checks++) {
    // One descriptor, so that mode and content belong to the same file.
    const file = openSync(credentials(), 'r')
    try {
      expect(fstatSync(file).mode & 0o777).toBe(0o600)
      const profile = JSON.parse(readFileSync(file, 'utf8'))
      expect(profile.refreshToken).toMatch(/^rk_rt_v1_[\w-]{96}$/)
    } finally {
      closeSync(file)
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await finished
  return checks
}

/** Returns the server's state of the session in the file. */
async function session() {
  const { sessionId, refreshToken } = stored()
  const { rows } = await database.query<{ generation: string; revocation: string | null }>(
    `select refresh_generation::text as generation, revocation
       from service_operator_sessions where session_id = $1`,
    [sessionId],
  )
  // The token begins with 16 bytes of the session, followed by the generation.
  const token = Buffer.from(refreshToken.slice('rk_rt_v1_'.length), 'base64url')
  const behind = BigInt(rows[0]!.generation) - token.readBigUInt64BE(16)
  return { generation: Number(rows[0]!.generation), revocation: rows[0]!.revocation, behind }
}

test('sixteen processes with an expired access token refresh it once', async () => {
  expire()
  const { generation } = await session()
  const began = performance.now()
  const processes = Array.from({ length: PROCESSES }, startWhoami)
  const statuses = Promise.all(processes.map(({ status }) => status))
  expect(await checkingFile(statuses)).toBeGreaterThan(10)
  roundMs = performance.now() - began
  expect(await statuses).toEqual(Array(PROCESSES).fill(0))
  expect(await session()).toEqual({ generation: generation + 1, revocation: null, behind: 0n })
})

test(`a killed process harms no file and no other process (SVC_SEED=${SEED})`, async () => {
  const random = randomFrom(SEED)
  for (let round = 0; round < ROUNDS; round++) {
    expire()
    const processes = Array.from({ length: PROCESSES }, startWhoami)
    const victims = processes.slice(0, PROCESSES / 2)
    for (const { kill } of victims) setTimeout(kill, random() * roundMs)
    const statuses = Promise.all(processes.map(({ status }) => status))
    expect(await checkingFile(statuses)).toBeGreaterThan(10)
    const survivors = (await statuses).slice(victims.length)
    const { revocation, behind } = await session()
    if (revocation === null) {
      expect(survivors).toEqual(Array(survivors.length).fill(0))
      expect(await startWhoami().status).toBe(0)
      continue
    }
    // A refresh token works once, so the new one must not be lost between the response and the
    // file.
    // A process that is killed exactly there ends the session; nothing else can.
    expect([revocation, behind]).toEqual(['reuse', 1n])
    for (const status of survivors) expect([0, 3]).toContain(status)
    await recover()
  }
}, 240_000)

/** Opens a new session of an owner after the previous one ended. */
async function recover(): Promise<void> {
  await server.stop()
  const confirm = { SERVICE_OWNER_RECOVERY_CONFIRM: 'issue-owner-invitation' }
  const environment = { ...installation.environment, ...confirm }
  expect((await run(argv`${SERVER} recover-owner`, { environment })).status).toBe(0)
  server = await installation.start()
  const file = join(installation.directory, 'state/bootstrap/owner-recovery.code')
  await login(readFileSync(file, 'utf8').trim())
}

/** Returns a generator of numbers in [0, 1), determined by the seed. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
