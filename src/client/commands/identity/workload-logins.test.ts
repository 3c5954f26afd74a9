/**
 * Jobs at the command line: invited by an owner, logged in with a token of their platform.
 *
 * @module-tag slow
 */
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TestClient } from '../../../../testing/client/test-client.ts'
import { type TestIdentity, testIdentity } from '../../../../testing/identity.ts'
import { testManagement } from '../../../../testing/openapi/checked-origins.ts'
import {
  SHAPES,
  type WorkloadIssuers,
  workloadIssuers,
} from '../../../../testing/providers/workload-issuers.ts'
import { type AuthApp, authRoutes } from '../../../http/management/identity/auth.ts'
import { invitationOperationRoutes } from '../../../http/management/identity/invitation-operations.ts'
import { invitationRoutes } from '../../../http/management/identity/invitations.ts'
import { oidcRoutes } from '../../../http/management/identity/oidc.ts'
import { sessionRoutes } from '../../../http/management/identity/sessions.ts'
import { LOCAL_ORIGIN } from '../../origins.ts'

let t: TestIdentity
let issuers: WorkloadIssuers
let owner: TestClient
let job: TestClient
/** Requests that arrived, oldest first. */
let requests: string[]
/** Methods whose next answer is thrown away after the server gave it. */
let lost: string[]

beforeEach(async () => {
  issuers = await workloadIssuers()
  t = await testIdentity({ external: { workloads: issuers.providers } })
  t.system.advance(Date.now() - t.system.nowMillis())
  await t.identity.startup()
  const { identity } = t
  const server = testManagement<AuthApp>({
    app: { identity, sessions: identity, environment: null, managementOrigin: null },
    system: t.system,
    log: t.log.log,
    routes: [
      ...authRoutes,
      ...oidcRoutes,
      ...sessionRoutes,
      ...invitationRoutes,
      ...invitationOperationRoutes,
    ],
  })
  requests = []
  lost = []
  owner = new TestClient()
  job = new TestClient()
  for (const client of [owner, job]) {
    client.fetch = async (url, init) => {
      requests.push(`${init.method} ${url.slice(LOCAL_ORIGIN.length)}`)
      const response = await server.request(url.slice(LOCAL_ORIGIN.length), init)
      const at = lost.indexOf(init.method ?? '')
      if (at === -1) return response
      lost.splice(at, 1)
      throw new TypeError('the connection was lost')
    }
  }
  owner.variables.SVC_CODE = readFileSync(t.codePath, 'utf8')
  const options = ['--url', LOCAL_ORIGIN, '--code-env', 'SVC_CODE']
  expect((await owner.run('login', ...options)).exit).toBe(0)
})

afterEach(async () => {
  owner[Symbol.dispose]()
  job[Symbol.dispose]()
  await t.dispose()
  await issuers.close()
})

const SUBJECT = SHAPES.github.claims.sub
const INVITE = ['invite', '--workload', 'github', '--subject', SUBJECT, '--role', 'observer']
const invite = (...more: string[]) => owner.run(...INVITE, '--scope', 'installation', ...more)

async function logIn(client: TestClient, ...more: string[]) {
  client.variables.OIDC = await issuers.token('github', t.system.nowMillis())
  return client.run('login', '--url', LOCAL_ORIGIN, '--oidc-token-env', 'OIDC', ...more)
}

const stored = (client: TestClient) => JSON.parse(readFileSync(client.credentials, 'utf8'))

test('an invited job logs in without a code and acts as its operator', async () => {
  const invited = await invite('--json')
  expect(invited.exit).toBe(0)
  const invitation = JSON.parse(invited.out)
  expect(invitation).toMatchObject({
    operatorName: 'workload of github',
    workload: { providerId: 'github' },
  })
  expect(invitation).not.toHaveProperty('code')
  const ran = await logIn(job)
  expect(ran).toMatchObject({ exit: 0, err: '' })
  expect(ran.out).toContain('the session of a workload: it ends at ')
  expect(stored(job).refreshToken).toBeNull()
  expect(ran.out).not.toContain(stored(job).accessToken)
  const self = JSON.parse((await job.run('whoami', '--json')).out)
  expect(self.operator.operatorName).toBe('workload of github')
  const status = await job.run('auth', 'status')
  expect(status.out).toContain('ends with its access token')
  const shown = await owner.run('invitations', 'show', invitation.operationId)
  expect(shown.out).toContain('consumed')
  expect(shown.out).toContain('For a workload of github.')
  expect((await job.run('logout')).exit).toBe(0)
  expect(existsSync(job.credentials)).toBe(false)
})

test('a job that is not invited is told what it needs', async () => {
  const ran = await logIn(job)
  expect(ran.exit).toBe(3)
  expect(ran.err).toContain('svc invite --workload')
  expect(existsSync(job.credentials)).toBe(false)
})

test('a token that was used changes nothing of the stored session', async () => {
  await invite()
  expect((await logIn(job)).exit).toBe(0)
  const before = readFileSync(job.credentials, 'utf8')
  const again = await job.run('login', '--url', LOCAL_ORIGIN, '--oidc-token-env', 'OIDC')
  expect([again.exit, again.err]).toEqual([3, expect.stringContaining('not used yet')])
  expect(readFileSync(job.credentials, 'utf8')).toBe(before)
})

test('a session without refresh token is not refreshed, and says how to log in', async () => {
  await invite()
  await logIn(job)
  requests.length = 0
  await t.sql(
    `update service_operator_sessions set revoked_at_micros = 1, revocation = 'requested'`,
  )
  const revoked = await job.run('whoami')
  expect([revoked.exit, revoked.err]).toEqual([3, expect.stringContaining('--oidc-token-env')])
  expect(requests).toEqual(['GET /v1/auth/me'])
})

test('a stored session that is past its end is not sent', async () => {
  await invite()
  await logIn(job)
  t.system.advance(-700_000)
  await logIn(job)
  requests.length = 0
  const ran = await job.run('whoami')
  expect([ran.exit, ran.err]).toEqual([3, expect.stringContaining('cannot be refreshed')])
  expect(requests).toEqual([])
})

test('a session is used to its last moment', async () => {
  await invite()
  t.system.advance(-590_000)
  await logIn(job)
  expect((await job.run('whoami')).exit).toBe(0)
})

test('a job adopts the session of a login that happened while it ran', async () => {
  await invite()
  await logIn(job)
  const first = readFileSync(job.credentials, 'utf8')
  await logIn(job)
  const { accessToken } = stored(job)
  await t.sql(
    `update service_operator_sessions set revoked_at_micros = 1, revocation = 'requested'
      where session_id = $1`,
    [JSON.parse(first).sessionId],
  )
  const second = readFileSync(job.credentials, 'utf8')
  writeFileSync(job.credentials, first)
  const send = job.fetch
  let swapped = false
  job.fetch = async (url, init) => {
    if (!swapped) writeFileSync(job.credentials, second)
    swapped = true
    return send(url, init)
  }
  expect((await job.run('whoami')).exit).toBe(0)
  expect(stored(job).accessToken).toBe(accessToken)
})

test('the session of a workload does not replace that of a person on a plain machine', async () => {
  await invite()
  const home = String(owner.variables.SERVICE_CONFIG_HOME)
  const own = join(owner.home, '.config', 'service', 'credentials-v1.json')
  delete owner.variables.SERVICE_CONFIG_HOME
  cpSync(home, join(owner.home, '.config', 'service'), { recursive: true })
  const before = readFileSync(own, 'utf8')
  const rejected = await logIn(owner)
  expect([rejected.exit, rejected.err]).toEqual([2, expect.stringContaining('SERVICE_CONFIG_HOME')])
  expect(readFileSync(own, 'utf8')).toBe(before)
  expect((await owner.run('whoami')).out).toContain('owner')
  const open = await t.sql(
    `select 1 from service_operator_sessions s join service_operators o using (operator_id)
      where o.operator_name <> 'owner' and s.revoked_at_micros is null`,
  )
  expect(open).toEqual([])
  owner.variables.CI = 'true'
  expect((await logIn(owner)).exit).toBe(0)
  expect(JSON.parse(readFileSync(own, 'utf8')).refreshToken).toBeNull()
  delete owner.variables.CI
  expect((await logIn(owner)).exit).toBe(0)
})

test('the session of a workload replaces any other if SERVICE_CONFIG_HOME is set', async () => {
  await invite()
  expect((await logIn(owner)).exit).toBe(0)
  expect(stored(owner).refreshToken).toBeNull()
})

test('a lost answer of an invitation without a code is settled by its look-up', async () => {
  lost.push('POST')
  const ran = await invite('--operator-name', 'deployer', '--json')
  expect(ran.exit).toBe(0)
  expect(JSON.parse(ran.out)).toMatchObject({ operatorName: 'deployer', state: 'pending' })
  expect((await logIn(job)).exit).toBe(0)
})

test('mistakes in the options of svc invite are told without asking the server', async () => {
  requests.length = 0
  for (const [options, message] of [
    [['--workload', 'github'], '--workload and --subject go together.'],
    [['--subject', 'x'], '--workload and --subject go together.'],
    [['--workload', 'github', '--subject', 'x', '--code-out', 'code'], 'needs no code'],
    [['--scope', 'installation'], '--operator-name is required.'],
    [['--operator-name', 'ana'], '--scope is required.'],
  ] as const) {
    const ran = await owner.run('invite', '--role', 'observer', ...options)
    expect([ran.exit, ran.err]).toEqual([2, expect.stringContaining(message)])
  }
  expect(requests).toEqual([])
})

test('an unknown provider is named by the rule that it breaks', async () => {
  const options = ['--workload', 'jenkins', '--subject', 'x', '--role', 'observer']
  const ran = await owner.run('invite', ...options, '--scope', 'installation')
  expect([ran.exit, ran.err]).toEqual([8, expect.stringContaining('workload.providerId')])
})
