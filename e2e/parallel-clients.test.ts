/** Many `svc` processes over one credentials file, against the real server. */
import { spawn } from 'node:child_process'
import { closeSync, fstatSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SEED } from '../build/testing/seeds.ts'
import type { ServerProcess } from '../build/testing/servers/server-process.ts'
import { CLIENT, type Installation, installation, run, SERVER } from './harness.ts'

const PROCESSES = 16
/** On the way to the server, so that whoever refreshes is overtaken by the others. */
const DELAY_MS = 400
const ROUNDS = 3

let of: Installation
let server: ServerProcess
let slow: Server
let database: Client
/** What a round takes here: whoever is killed may be anywhere in it. */
let roundMs = 1_000

beforeAll(async () => {
  of = await installation()
  server = await of.start()
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
  const url = of.environment.SERVICE_IDENTITY_DATABASE_URL_FILE!
  database = new Client({ connectionString: readFileSync(url, 'utf8') })
  await database.connect()
  await login(readFileSync(of.codeFile, 'utf8').trim())
})

afterAll(async () => {
  slow?.close()
  await database?.end()
  await of?.dispose()
})

const credentials = (): string => join(of.directory, 'config/credentials-v1.json')
const stored = () => JSON.parse(readFileSync(credentials(), 'utf8'))

async function login(code: string): Promise<void> {
  const { port } = slow.address() as AddressInfo
  const args = ['login', '--url', `http://127.0.0.1:${port}`, '--code-env', 'CODE']
  const { status, stderr } = await of.svc(args, { CODE: code })
  expect([status, stderr]).toEqual([0, expect.not.stringContaining('error')])
}

/** The access token ends now, as far as every process knows that reads the file from here on. */
function expire(): void {
  const content = JSON.stringify({ ...stored(), accessExpiresAtMicros: '1' })
  writeFileSync(credentials(), content, { mode: 0o600 })
}

interface Started {
  kill(): void
  /** null for one that was killed. */
  readonly status: Promise<number | null>
}

function startWhoami(): Started {
  const child = spawn(CLIENT, ['whoami', '--json'], {
    cwd: join(of.directory, 'run'),
    env: { ...of.clientEnvironment },
    stdio: 'ignore',
  })
  return {
    kill: () => child.kill('SIGKILL'),
    status: new Promise((resolve) => child.once('close', (status) => resolve(status))),
  }
}

/** Looks at the file over and over until `work` is done; answers how often. */
async function watching(work: Promise<unknown>): Promise<number> {
  let done = false
  const finished = work.finally(() => {
    done = true
  })
  let looks = 0
  for (; !done; looks++) {
    // One descriptor: the mode and the content are of the same file.
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
  return looks
}

/** What the server knows of the session in the file. */
async function session() {
  const { sessionId, refreshToken } = stored()
  const { rows } = await database.query<{ generation: string; revocation: string | null }>(
    `select refresh_generation::text as generation, revocation
       from service_operator_sessions where session_id = $1`,
    [sessionId],
  )
  // 16 bytes of session, then the generation.
  const token = Buffer.from(refreshToken.slice('rk_rt_v1_'.length), 'base64url')
  const behind = BigInt(rows[0]!.generation) - token.readBigUInt64BE(16)
  return { generation: Number(rows[0]!.generation), revocation: rows[0]!.revocation, behind }
}

test('sixteen over an ended access token refresh once, and nobody is logged out', async () => {
  expire()
  const { generation } = await session()
  const began = performance.now()
  const processes = Array.from({ length: PROCESSES }, startWhoami)
  const statuses = Promise.all(processes.map(({ status }) => status))
  expect(await watching(statuses)).toBeGreaterThan(10)
  roundMs = performance.now() - began
  expect(await statuses).toEqual(Array(PROCESSES).fill(0))
  expect(await session()).toEqual({ generation: generation + 1, revocation: null, behind: 0n })
})

test(`whoever is killed harms no file and no other process (SVC_SEED=${SEED})`, async () => {
  const random = randomFrom(SEED)
  for (let round = 0; round < ROUNDS; round++) {
    expire()
    const processes = Array.from({ length: PROCESSES }, startWhoami)
    const victims = processes.slice(0, PROCESSES / 2)
    for (const { kill } of victims) setTimeout(kill, random() * roundMs)
    const statuses = Promise.all(processes.map(({ status }) => status))
    expect(await watching(statuses)).toBeGreaterThan(10)
    const survivors = (await statuses).slice(victims.length)
    const { revocation, behind } = await session()
    if (revocation === null) {
      expect(survivors).toEqual(Array(survivors.length).fill(0))
      expect(await startWhoami().status).toBe(0)
      continue
    }
    // A refresh token works once, so the new one must not be lost between answer and file. Who is
    // killed exactly there ends the session, and that is the only way to it.
    expect([revocation, behind]).toEqual(['reuse', 1n])
    for (const status of survivors) expect([0, 3]).toContain(status)
    await recover()
  }
}, 240_000)

/** Another session of an owner, in place of the one that ended. */
async function recover(): Promise<void> {
  await server.stop()
  const confirm = { SERVICE_OWNER_RECOVERY_CONFIRM: 'issue-owner-invitation' }
  const environment = { ...of.environment, ...confirm }
  expect((await run([SERVER, 'recover-owner'], { environment })).status).toBe(0)
  server = await of.start()
  const file = join(of.directory, 'state/bootstrap/owner-recovery.code')
  await login(readFileSync(file, 'utf8').trim())
}

/** Uniform in [0, 1), the same for one seed. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
