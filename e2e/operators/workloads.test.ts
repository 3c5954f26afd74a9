/**
 * CI jobs without stored secrets: in a row, at once, and a week later.
 *
 * @module-tag slow
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type Platform,
  SHAPES,
  type WorkloadIssuers,
  workloadIssuers,
} from '../../testing/providers/workload-issuers.ts'
import { type Application, application } from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENT, run } from '../harness.ts'
import { deploy, inviteWorkloads, newJob, readEnvironmentId } from './workloads.ts'

/** The long run adds the other platforms, whose tokens have other claims. */
const CI: readonly Platform[] =
  process.env.SVC_TEST_LONG === '1'
    ? ['github', 'gitlab', 'buildkite', 'kubernetes']
    : ['github', 'kubernetes']

let issuers: WorkloadIssuers
let app: Application
let directory: string

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-workloads-'))
  issuers = await workloadIssuers()
  const path = join(directory, 'workload-oidc.json')
  writeFileSync(path, JSON.stringify(issuers.file), { mode: 0o600 })
  app = await application(undefined, { SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG: path })
  await inviteWorkloads(app, CI)
})

afterAll(async () => {
  await app?.installation.dispose()
  await issuers?.close()
  rmSync(directory, { recursive: true, force: true })
})

const token = (platform: Platform, claims = {}) => issuers.token(platform, Date.now(), claims)
const channels = async (): Promise<Record<string, string>> => {
  const status = await app.svc(argv`status --remote --root ${app.installation.productRoot}`)
  return Object.fromEntries(
    status.channels.map((each: { channel: string; releaseId: string }) => [
      each.channel,
      each.releaseId,
    ]),
  )
}
const operators = async (): Promise<unknown[]> =>
  query(`select operator_id from service_operators where operator_name like 'workload of %'`)

async function query(text: string): Promise<unknown[]> {
  const url = readFileSync(app.installation.environment.SERVICE_IDENTITY_DATABASE_URL_FILE!, 'utf8')
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

test('consecutive jobs log in, link, release and promote, each on an empty machine', async () => {
  const released = new Map<string, string>()
  for (const platform of [...CI, ...CI.slice(0, 1)]) {
    const before = released.get(platform)
    released.set(platform, await deploy(app, await token(platform), platform))
    expect(released.get(platform)).not.toBe(before)
  }
  expect(await channels()).toMatchObject(Object.fromEntries(released))
  expect(new Set(released.values()).size).toBe(CI.length)
  expect(await operators()).toHaveLength(CI.length)
})

test('concurrent jobs log in and link, each with a session of its own', async () => {
  const before = await query('select 1 from service_operator_sessions')
  const runs = await Promise.all(
    [...CI, ...CI.slice(0, 1)].map(async (platform) => {
      const job = newJob(app)
      const OIDC = await token(platform)
      const login = argv`login --url ${app.server.management} --oidc-token-env OIDC`
      const link = argv`link --root . --environment-id ${readEnvironmentId(app)}`
      const runs = [await job.svc(login, { OIDC }), await job.svc(link)]
      return [...runs, await job.svc(argv`status --remote`)]
    }),
  )
  expect(runs.flat().filter(({ status }) => status !== 0)).toEqual([])
  expect(await query('select 1 from service_operator_sessions')).toHaveLength(
    before.length + CI.length + 1,
  )
  expect(await operators()).toHaveLength(CI.length)
})

test('concurrent jobs that release all succeed if they are repeated', async () => {
  const attempts = CI.map(async (platform) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await deploy(app, await token(platform), platform)
      } catch (error) {
        // Another job published first: the expected HEAD is stale (contract/management.md, Exit
        // codes and retries).
        if (attempt === 8 || !/PRODUCT_CAS_CONFLICT/.test(String(error))) throw error
      }
    }
  })
  const released = await Promise.all(attempts)
  const bound = await channels()
  expect(CI.map((platform) => bound[platform])).toEqual(released)
})

test('a job of another branch, or with a used token, gets no session', async () => {
  const sessions = 'select 1 from service_operator_sessions'
  const before = await query(sessions)
  const job = newJob(app)
  const login = argv`login --url ${app.server.management} --oidc-token-env OIDC`
  const wrong = await job.svc(login, { OIDC: await token('github', { ref: 'refs/heads/evil' }) })
  const OIDC = await token('github')
  const [first, again] = [await job.svc(login, { OIDC }), await newJob(app).svc(login, { OIDC })]
  expect([wrong.status, first.status, again.status]).toEqual([3, 0, 3])
  expect(await query(sessions)).toHaveLength(before.length + 1)
  expect(
    await query(`select operation from service_platform_audit where outcome = 'denied'`),
  ).toEqual([{ operation: 'identity.login' }, { operation: 'identity.login' }])
  const printed = [wrong, first, again].map(({ stdout, stderr }) => stdout + stderr).join()
  for (const text of [printed, app.server.lines.join()]) {
    expect(text).not.toContain(OIDC.slice(-40))
    expect(text).not.toContain(SHAPES.github.claims.sub)
  }
})

test('jobs log in a week later, with new keys of their platforms', async () => {
  const old = newJob(app)
  const login = argv`login --url ${app.server.management} --oidc-token-env OIDC`
  expect((await old.svc(login, { OIDC: await token('github') })).status).toBe(0)
  expect((await old.svc(argv`whoami`)).status).toBe(0)
  await app.server.stop()
  // A week passes: everything that is stored happened a week earlier.
  await query(`do $$ declare each record; begin
    for each in select table_name, column_name from information_schema.columns
                 where table_schema = 'public' and column_name like '%\\_micros' loop
      execute format('update %I set %I = %I - 604800000000',
                     each.table_name, each.column_name, each.column_name);
    end loop; end $$`)
  await issuers.rotate()
  await app.start()
  const stale = await old.svc(argv`whoami`)
  expect([stale.status, stale.stdout]).toEqual([3, expect.stringContaining('--oidc-token-env')])
  const released = new Map<string, string>()
  for (const platform of CI) {
    released.set(platform, await deploy(app, await token(platform), platform))
  }
  expect(await channels()).toMatchObject(Object.fromEntries(released))
  expect(await operators()).toHaveLength(CI.length)
  // The records that only unexpired tokens need are deleted.
  expect(await query('select 1 from service_operator_token_uses')).toHaveLength(CI.length)
})

test('a job that its author runs locally leaves the session of the author unchanged', async () => {
  const home = join(app.installation.directory, 'desk')
  const environment = { HOME: home, SVC_ALLOW_LOOPBACK_HTTP: 'true' }
  const own = join(home, '.config/service/credentials-v1.json')
  const { code } = await app.svc(
    argv`
      invite --operator-name ana --role developer --root ${app.installation.productRoot}
      --scope environment
    `,
  )
  const svc = (args: readonly string[], more: Record<string, string> = {}) =>
    run(argv`${CLIENT} ${args} --url ${app.server.management}`, {
      environment: { ...environment, ...more },
    })
  expect((await svc(argv`login --code-env CODE`, { CODE: code })).status).toBe(0)
  const before = readFileSync(own, 'utf8')
  const rejected = await svc(argv`login --oidc-token-env OIDC`, { OIDC: await token('github') })
  expect([rejected.status, rejected.stderr]).toEqual([2, expect.stringContaining('ana')])
  expect(readFileSync(own, 'utf8')).toBe(before)
  const elsewhere = { OIDC: await token('github'), SERVICE_CONFIG_HOME: join(home, 'job') }
  expect((await svc(argv`login --oidc-token-env OIDC`, elsewhere)).status).toBe(0)
  expect(existsSync(join(home, 'job/credentials-v1.json'))).toBe(true)
})
