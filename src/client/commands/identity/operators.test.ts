/** The commands that show an operator its session, grants, resources and audit. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import { type FakeServer, newId } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'

let server: FakeServer
let client: TestClient

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
})

describe('svc auth status', () => {
  it('shows the stored session without a request', async () => {
    const stored = JSON.parse(readFileSync(client.credentials, 'utf8'))
    server.stop()
    const ran = await client.run('auth', 'status', '--json')
    expect(ran).toMatchObject({ exit: 0, err: '' })
    expect(JSON.parse(ran.out)).toEqual({
      version: 1,
      loggedIn: true,
      authenticationOrigin: server.origin,
      managementOrigin: server.origin,
      operator: { operatorId: stored.operatorId, operatorName: 'owner' },
      sessionId: server.sessionId,
      accessExpiresAtMicros: stored.accessExpiresAtMicros,
      accessExpired: false,
      refreshExpiresAtMicros: stored.refreshExpiresAtMicros,
      credentialsFile: client.credentials,
    })
    expect((await client.run('auth', 'status')).out).toContain(`Logged in to ${server.origin}`)
    expect(server.requests).toEqual([])
  })

  it('ends with 3 without a session or with an expired one', async () => {
    const stored = JSON.parse(readFileSync(client.credentials, 'utf8'))
    const earlier = JSON.stringify({ ...stored, accessExpiresAtMicros: '1' })
    writeFileSync(client.credentials, earlier, { mode: 0o600 })
    const expired = await client.run('auth', 'status', '--json')
    expect([expired.exit, JSON.parse(expired.out).accessExpired]).toEqual([0, true])

    const over = JSON.stringify({ ...stored, refreshExpiresAtMicros: '1' })
    writeFileSync(client.credentials, over, { mode: 0o600 })
    const ended = await client.run('auth', 'status', '--json')
    expect([ended.exit, JSON.parse(ended.out).error.code]).toEqual([3, 'CLIENT_NOT_LOGGED_IN'])

    await client.run('logout')
    const none = await client.run('auth', 'status', '--json')
    expect([none.exit, JSON.parse(none.out).error.code]).toEqual([3, 'CLIENT_NOT_LOGGED_IN'])
  })
})

describe('svc whoami and svc resources', () => {
  it('print the responses of the server', async () => {
    const self = JSON.parse((await client.run('whoami', '--json')).out)
    expect(self).toMatchObject({ version: 1, authorizationRevision: '3', grants: [] })
    const human = await client.run('whoami')
    expect(human.out).toContain(`owner  ${self.operator.operatorId}  ${server.sessionId}`)
    expect(human.out).toContain('This operator has no grant.')

    const found = JSON.parse((await client.run('resources', '--json')).out)
    expect(found.resources).toMatchObject([{ environmentId: server.environmentId }])
    const table = (await client.run('resources')).out
    expect(table).toContain(`my-app  ${server.projectId}  ${server.environmentId}`)
    expect(table).toContain(server.origin)
  })

  it('show grants with their scope', async () => {
    const { projectId } = server
    const grant = (scope: object) => ({ scope, capabilities: ['logs:read'], source: 'managed' })
    server.intercept = ({ path }) => {
      if (path !== '/v1/auth/me') return null
      const login = server.login()
      const grants = [
        grant({ kind: 'installation', projectId: null, environmentId: null }),
        grant({ kind: 'project', projectId, environmentId: null }),
      ]
      const { operator, session } = login
      const body = { version: 1, operator, session, grants, authorizationRevision: '9' }
      return { status: 200, body: body as never }
    }
    const { out } = await client.run('whoami')
    expect(out).toMatch(/^installation +managed +logs:read$/m)
    expect(out).toMatch(new RegExp(`^${projectId} +managed +logs:read$`, 'm'))
  })
})

describe('svc sessions', () => {
  it('lists the sessions with and without the word list', async () => {
    const listed = await client.run('sessions', 'list', '--json')
    expect((await client.run('sessions', '--json')).out).toBe(listed.out)
    expect((await client.run('--json', 'sessions')).out).toBe(listed.out)
    expect(JSON.parse(listed.out).sessions).toMatchObject([{ sessionId: server.sessionId }])
    const { out } = await client.run('sessions')
    expect(out).toMatch(new RegExp(`^${server.sessionId} .* this one$`, 'm'))
    const wrong = await client.run('sessions', 'lst')
    expect([wrong.exit, wrong.err]).toEqual([2, expect.stringContaining('mean sessions list?')])
  })

  it('revokes another session and keeps this machine logged in', async () => {
    const { otherSessionId } = server.identity
    const ran = await client.run('sessions', 'revoke', otherSessionId, '--json')
    expect(JSON.parse(ran.out)).toEqual({
      version: 1,
      sessionId: otherSessionId,
      revoked: true,
      loggedOut: false,
    })
    expect(existsSync(client.credentials)).toBe(true)
    expect((await client.run('sessions', 'revoke', newId.make('ops'))).exit).toBe(7)
    expect((await client.run('sessions', 'revoke', newId.make('opi'))).exit).toBe(2)
  })

  it.each([null, 'drop-after' as const])(
    'revokes the session of this machine and removes it (%s)',
    async (lost) => {
      let left = 1
      server.intercept = ({ method }) => (method === 'DELETE' && left-- > 0 ? lost : null)
      const ran = await client.run('sessions', 'revoke', server.sessionId, '--json')
      expect([ran.exit, JSON.parse(ran.out).loggedOut]).toEqual([0, true])
      expect([server.sessionRevoked, existsSync(client.credentials)]).toEqual([true, false])
    },
  )
})

describe('svc audit', () => {
  const CURSORS = [`cursor_-${'A'.repeat(35)}`, `next_-${'A'.repeat(37)}`] as const

  it('requests one page with exactly the given filters', async () => {
    const operator = newId.make('opr')
    const times = ['--from', '2026-01-31T08:00:00Z', '--to', '1800000000000000']
    const more = ['--limit', '7', '--after', CURSORS[0]]
    const filters = ['--operator', operator, '--operation', 'session.create', ...times, ...more]
    server.identity.auditItems.push(server.identity.auditRecord('session.create'))
    server.identity.auditNext = CURSORS[1]
    const ran = await client.run('audit', ...filters, '--json')
    expect(JSON.parse(ran.out)).toEqual({
      version: 1,
      items: server.identity.auditItems,
      next: CURSORS[1],
    })
    const [request] = server.requests
    const url = new URL(request!.path, server.origin)
    expect(url.pathname).toBe('/v1/access/audit')
    expect(Object.fromEntries(url.searchParams)).toEqual({
      operator,
      operation: 'session.create',
      from: '1769846400000000',
      to: '1800000000000000',
      limit: '7',
      after: CURSORS[0],
    })
    server.identity.auditItems.push({
      ...server.identity.auditRecord('session.revoke'),
      purpose: 'console',
    })
    const human = await client.run('audit')
    expect(server.requests.at(-1)!.path).toBe('/v1/access/audit')
    expect(human.out).toMatch(/^TIME +OPERATION +OUTCOME +ACTOR +SUBJECT +REQUEST +PURPOSE\n/)
    expect(human.out).toContain('2027-01-15T08:00:00Z  session.create  succeeded  opr_')
    expect(human.out).toMatch(/ session\.revoke .* console\n/)
    expect(human.err).toBe(`More: --after ${CURSORS[1]}\n`)
  })

  it.each([
    [['--operator', 'ana'], '--operator needs an opr_ identifier.'],
    [['--limit', '0'], '--limit needs a number from 1 to 1000.'],
    [['--limit', '1001'], '--limit needs a number from 1 to 1000.'],
    [['--limit', '1e1'], '--limit needs a number from 1 to 1000.'],
    [['--from', 'yesterday'], '--from needs a time'],
    [['--to=-5'], '--to needs a time'],
  ])('sends no request with %j', async (options, message) => {
    const ran = await client.run('audit', ...options)
    expect([ran.exit, ran.err]).toEqual([2, expect.stringContaining(message)])
    expect(server.requests).toEqual([])
  })
})
