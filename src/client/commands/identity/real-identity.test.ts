/** The identity commands against the real routes over PostgreSQL, from first code to audit. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TestClient } from '../../../../testing/client/test-client.ts'
import { type TestIdentity, testIdentity } from '../../../../testing/identity.ts'
import { testManagement } from '../../../../testing/openapi/checked-origins.ts'
import { type AuditApp, auditRoutes } from '../../../http/management/identity/audit.ts'
import { type AuthApp, authRoutes } from '../../../http/management/identity/auth.ts'
import { invitationOperationRoutes } from '../../../http/management/identity/invitation-operations.ts'
import {
  type InvitationsApp,
  invitationRoutes,
} from '../../../http/management/identity/invitations.ts'
import { operatorRoutes } from '../../../http/management/identity/operators.ts'
import { type SessionsApp, sessionRoutes } from '../../../http/management/identity/sessions.ts'
import type { Route } from '../../../http/management/route.ts'
import { LOCAL_ORIGIN } from '../../origins.ts'

type App = AuditApp & AuthApp & InvitationsApp & SessionsApp

let t: TestIdentity
let owner: TestClient
let guest: TestClient
/** Methods of requests whose responses are dropped after the server sent them. */
let lost: string[]

beforeEach(async () => {
  t = await testIdentity()
  t.system.advance(Date.now() - t.system.nowMillis())
  await t.identity.startup()
  const routes = [
    ...authRoutes,
    ...sessionRoutes,
    ...invitationRoutes,
    ...invitationOperationRoutes,
    ...operatorRoutes,
    ...auditRoutes,
  ] as readonly Route<App>[]
  const { identity } = t
  const app = { identity, sessions: identity, environment: null, managementOrigin: null }
  const server = testManagement<App>({ app, system: t.system, log: t.log.log, routes })
  lost = []
  owner = new TestClient()
  guest = new TestClient()
  for (const client of [owner, guest]) {
    client.fetch = async (url, init) => {
      const response = await server.request(url.slice(LOCAL_ORIGIN.length), init)
      const at = lost.indexOf(init.method ?? '')
      if (at === -1) return response
      lost.splice(at, 1)
      throw new TypeError('the connection was lost')
    }
  }
  owner.variables.SVC_CODE = readFileSync(t.codePath, 'utf8')
  expect((await logIn(owner)).exit).toBe(0)
})

afterEach(async () => {
  owner[Symbol.dispose]()
  guest[Symbol.dispose]()
  await t.dispose()
})

function logIn(client: TestClient) {
  return client.run('login', '--url', LOCAL_ORIGIN, '--code-env', 'SVC_CODE')
}

const INVITE = ['invite', '--operator-name', 'ana', '--role', 'developer', '--scope']

const DERIVE = ['sessions', 'derive', '--scope', 'installation', '--capability']

test('a derived session serves another svc with its capabilities until it is over', {
  tags: ['slow'],
}, async () => {
  const directory = join(owner.home, 'job')
  const derive = [...DERIVE, 'operators:manage', '--lifetime', '90s', '--config-home', directory]
  const ran = await owner.run(...derive, '--json')
  expect(ran.exit, ran.err).toBe(0)
  const { session, accessToken, path } = JSON.parse(ran.out)
  expect([accessToken, path]).toEqual([null, directory])
  expect(session).toMatchObject({ purpose: 'job', current: true })
  guest.variables.SERVICE_CONFIG_HOME = directory
  const self = JSON.parse((await guest.run('whoami', '--json')).out)
  expect(self.grants).toMatchObject([{ capabilities: ['operators:manage'] }])
  expect((await guest.run('operators', 'list')).exit).toBe(0)
  expect((await guest.run(...DERIVE, 'operators:manage')).exit).toBe(3)
  const listed = await owner.run('sessions')
  expect(listed.out).toMatch(new RegExp(`${session.sessionId}.* job `))
  const audit = JSON.parse(
    (await owner.run('audit', '--operation', 'session.derive', '--json')).out,
  )
  expect(audit.items).toMatchObject([{ subject: session.sessionId, purpose: 'job' }])
  // The session of a login is never replaced, and that of a job is.
  const own = [...derive.slice(0, -1), owner.variables.SERVICE_CONFIG_HOME!]
  expect((await owner.run(...own)).exit).toBe(2)
  expect((await owner.run(...derive)).exit).toBe(0)
  expect((await owner.run('logout')).exit).toBe(0)
  const ended = await guest.run('whoami', '--json')
  expect(JSON.parse(ended.out).error).toMatchObject({ code: 'CLIENT_NOT_LOGGED_IN' })
})

test('the token of a derived session is printed once or written to a private file', {
  tags: ['slow'],
}, async () => {
  const printed = await owner.run(...DERIVE, 'logs:read', '--purpose', 'mcp')
  expect(printed.out).toMatch(/^rk_at_v1_[\w-]{43}\n/)
  const file = join(owner.home, 'token')
  const written = await owner.run(...DERIVE, 'logs:read', '--token-out', file)
  expect(written.out).not.toContain('rk_at_')
  expect(readFileSync(file, 'utf8')).toMatch(/^rk_at_v1_[\w-]{43}\n$/)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect((await owner.run(...DERIVE, 'logs:read', '--token-out', file)).exit).not.toBe(0)
  for (const wrong of [
    ['sessions', 'derive', '--scope', 'installation'],
    [...DERIVE, 'logs:rea'],
    [...DERIVE, 'logs:read', '--purpose', 'person'],
    [...DERIVE, 'logs:read', '--lifetime', '2h'],
    [...DERIVE, 'logs:read', '--token-out', 'x', '--config-home', 'y'],
  ]) {
    expect((await owner.run(...wrong)).exit, wrong.join(' ')).toBe(2)
  }
})

test('an invitation creates an operator with exactly the given grant', {
  tags: ['slow'],
}, async () => {
  const scope = ['project', '--project-id', 'prj_00000000000000000000000001']
  const { code, operationId } = JSON.parse((await owner.run(...INVITE, ...scope, '--json')).out)
  guest.variables.SVC_CODE = code
  expect((await logIn(guest)).exit).toBe(0)
  const self = JSON.parse((await guest.run('whoami', '--json')).out)
  expect(self).toMatchObject({
    operator: { operatorName: 'ana' },
    grants: [{ scope: { kind: 'project' }, source: 'invitation' }],
  })
  const shown = JSON.parse((await owner.run('invitations', 'show', operationId, '--json')).out)
  expect(shown.state).toBe('consumed')
  expect((await owner.run('invitations', 'revoke', shown.invitationId)).exit).toBe(4)
  expect((await guest.run(...INVITE, 'installation')).exit).toBe(3)
  expect((await guest.run('audit')).exit).toBe(3)

  expect((await owner.run('sessions', 'revoke', self.session.sessionId)).exit).toBe(0)
  expect((await guest.run('whoami')).exit).toBe(3)
})

test('svc sessions follows the pages to the end', { tags: ['slow'] }, async () => {
  const ids = Array.from({ length: 2_300 }, () => t.system.ids.make('ops'))
  await t.sql(
    `insert into service_operator_sessions
       (session_id, operator_id, access_digest, access_expires_at_micros, refresh_digest,
        refresh_generation, refresh_expires_at_micros, created_at_micros, last_used_at_micros)
     select id, operator_id, sha256(id::bytea), access_expires_at_micros, refresh_digest, 1,
            refresh_expires_at_micros, created_at_micros, last_used_at_micros
       from service_operator_sessions, unnest($1::text[]) as id`,
    [ids],
  )
  const { sessions, next } = JSON.parse((await owner.run('sessions', '--json')).out)
  expect(sessions.map((each: { sessionId: string }) => each.sessionId).slice(0, -1)).toEqual(
    ids.toReversed(),
  )
  expect([sessions.length, sessions.at(-1).current, next]).toEqual([2_301, true, null])
  const table = (await owner.run('sessions')).out
  expect(table.match(/ops_/g)).toHaveLength(2_301)
})

test('a lost response is reconciled by its Operation ID, and its code can be revoked', {
  tags: ['slow'],
}, async () => {
  lost.push('POST')
  const ran = await owner.run(...INVITE, 'installation', '--json')
  expect([ran.exit, JSON.parse(ran.out).error.code]).toEqual([9, 'CLIENT_CODE_UNDELIVERED'])
  const [invitationId] = /opi_\w{26}/.exec(JSON.parse(ran.out).error.next) ?? []
  expect((await owner.run('invitations', 'revoke', String(invitationId))).exit).toBe(0)
  const [operationId] = /opn_\w{26}/.exec(ran.err) ?? []
  const shown = await owner.run('invitations', 'show', String(operationId), '--json')
  expect(JSON.parse(shown.out)).toMatchObject({ invitationId, state: 'revoked' })
})

test('the audit is read in pages and by its filters', { tags: ['slow'] }, async () => {
  for (let i = 0; i < 3; i++) await owner.run(...INVITE, 'installation')
  const read = async (...filters: string[]) => {
    const ran = await owner.run('audit', '--operation', 'invitation.create', ...filters, '--json')
    return JSON.parse(ran.out)
  }
  const all = await read()
  expect([all.items.length, all.next]).toEqual([3, null])
  const first = await read('--limit', '2')
  const second = await read('--limit', '2', '--after', first.next)
  expect([...first.items, ...second.items]).toEqual(all.items)
  const { operator } = JSON.parse((await owner.run('whoami', '--json')).out)
  expect((await read('--operator', operator.operatorId)).items).toEqual(all.items)
  expect((await read('--to', all.items[2].atMicros)).items).toEqual([])
  expect((await read('--from', all.items[2].atMicros)).items).toEqual(all.items)
  expect((await owner.run('audit', '--after', 'AAAA')).exit).toBe(8)
})

async function invited(name: string): Promise<void> {
  const line = ['invite', '--operator-name', name, '--role', 'developer', '--scope', 'installation']
  guest.variables.SVC_CODE = JSON.parse((await owner.run(...line, '--json')).out).code
  expect((await logIn(guest)).exit).toBe(0)
}

test('a colleague is offboarded by name, and comes back with the same grants', {
  tags: ['slow'],
}, async () => {
  await invited('ana')
  const { out } = await owner.run('operators')
  expect(out).toMatch(/^opr_\w{26} {2}ana {4}enabled {2}.* {2}developer@installation$/m)
  expect(out).toMatch(/^opr_\w{26} {2}owner {2}enabled {2}.* {2}owner@installation$/m)
  const shown = (await owner.run('operators', 'show', 'ana')).out
  expect(shown).toMatch(/^ana {2}opr_\w{26} {2}enabled$/m)
  expect(shown).toMatch(/^installation {2}developer {2}invitation {2}channels:promote /m)
  expect(shown.match(/ops_/g)).toHaveLength(1)

  const disabled = await owner.run('operators', 'disable', 'ana')
  expect([disabled.exit, disabled.out]).toEqual([
    0,
    expect.stringMatching(/^ana \(opr_\w{26}\) is disabled\.\n$/),
  ])
  expect((await guest.run('whoami')).exit).toBe(3)
  const gone = JSON.parse((await owner.run('operators', 'show', 'ana', '--json')).out)
  expect([gone.sessions, gone.operator.disabledAtMicros]).toEqual([[], expect.any(String)])
  const audit = (await owner.run('audit', '--operation', 'operator.disable')).out
  expect(audit).toMatch(/ succeeded {2}opr_\w{26} owner {2}opr_\w{26} ana {2}req_/)

  expect((await owner.run('operators', 'enable', gone.operator.operatorId)).exit).toBe(0)
  const back = JSON.parse((await owner.run('operators', 'show', 'ana', '--json')).out)
  expect([back.operator.disabledAtMicros, back.operator.grants]).toEqual([
    null,
    gone.operator.grants,
  ])
})

test('a grant is changed and revoked, and the last owner keeps its own', {
  tags: ['slow'],
}, async () => {
  await invited('ana')
  const at = ['--scope', 'installation']
  const changed = await owner.run('grants', 'change', 'ana', '--role', 'observer', ...at)
  expect([changed.exit, changed.out]).toEqual([
    0,
    expect.stringMatching(/^ana \(opr_\w{26}\) has now: observer@installation\.\n$/),
  ])
  const again = await owner.run('grants', 'change', 'ana', '--role', 'observer', ...at)
  expect(again.out).toContain('has already: observer@installation.')
  lost.push('PUT')
  const revoked = await owner.run('grants', 'revoke', 'ana', ...at, '--json')
  expect(JSON.parse(revoked.out)).toMatchObject({ operatorName: 'ana', grants: [] })
  expect((await guest.run('whoami')).out).toContain('This operator has no grant.')
  const last = await owner.run('grants', 'revoke', 'owner', ...at)
  expect([last.exit, last.err]).toEqual([4, expect.stringContaining('it is the last owner')])
  const wrong = await owner.run('grants', 'change', 'ana', '--role', 'king', ...at)
  expect([wrong.exit, wrong.err]).toEqual([2, expect.stringContaining('--role must be one of')])
  const audit = (await owner.run('audit', '--operation', 'grants.revoke')).out
  expect(audit).toMatch(/ succeeded {2}opr_\w{26} owner {2}opr_\w{26} ana {2}req_/)
})

test('an operator that is not clear or not known is not changed', { tags: ['slow'] }, async () => {
  for (const _ of [1, 2]) await invited('ana')
  const unclear = await owner.run('operators', 'disable', 'ana')
  expect([unclear.exit, unclear.err]).toEqual([
    2,
    expect.stringMatching(/2 operators are named ana: give one of opr_\w{26}, opr_\w{26}\./),
  ])
  const unknown = await owner.run('operators', 'disable', 'bo')
  expect([unknown.exit, unknown.err]).toEqual([
    7,
    expect.stringContaining('There is no operator bo; `svc operators list` shows them.'),
  ])
  const last = await owner.run('operators', 'disable', 'owner')
  expect([last.exit, last.err]).toEqual([4, expect.stringContaining('it is the last owner')])
  expect((await guest.run('operators')).exit).toBe(3)
})

test('the answer to a change that was lost is asked for again', { tags: ['slow'] }, async () => {
  await invited('ana')
  lost.push('POST')
  const { out } = await owner.run('operators', 'disable', 'ana', '--json')
  expect(JSON.parse(out).operation).toMatchObject({ kind: 'operator.disable', replayed: true })
})

test('an owner that disables itself is logged out', { tags: ['slow'] }, async () => {
  await invited('ana')
  const everything = JSON.parse((await owner.run('whoami', '--json')).out).grants[0].capabilities
  await t.sql('update service_operator_grants set capabilities = $1', [everything])
  const { out } = await owner.run('operators', 'disable', 'owner')
  expect(out).toContain('is disabled. This machine is logged out.')
  expect((await owner.run('whoami')).err).toContain('CLIENT_NOT_LOGGED_IN')
  expect((await guest.run('operators', 'enable', 'owner')).exit).toBe(0)
})

test('svc roles prints what the server grants', async () => {
  const { roles } = JSON.parse((await guest.run('roles', '--json')).out)
  await invited('ana')
  const { grants } = JSON.parse((await guest.run('whoami', '--json')).out)
  const developer = roles.find((each: { role: string }) => each.role === 'developer')
  expect(developer.capabilities).toEqual(grants[0].capabilities)
  const table = (await guest.run('roles')).out
  expect(table).toMatch(/^operators:manage +yes +- +- +-$/m)
  expect(table).toMatch(/^usage:read +yes +yes +- +yes$/m)
})
