import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  type FakeServer,
  failure,
  INVITATION,
  newId,
} from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { Ran, TestClient } from '../../../../testing/client/test-client.ts'

let server: FakeServer
let client: TestClient

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
})

const INVITATIONS = '/v1/access/invitations'
const OPERATION = newId.make('opn')
const ANA = ['--operator-name', 'ana', '--role', 'developer']
const INSTALLATION = [...ANA, '--scope', 'installation']

function invite(...more: string[]): Promise<Ran> {
  return client.run('invite', ...INSTALLATION, '--operation-id', OPERATION, ...more)
}

function issuances() {
  return server.requestsTo('POST', INVITATIONS)
}

function invitationId(): string {
  return String(server.identity.invitations.get(OPERATION)?.issued.invitationId)
}

describe('svc invite', () => {
  it('prints its Operation ID before the request, and the code once', async () => {
    let askedBefore: number | null = null
    client.onError = () => {
      askedBefore ??= server.requests.length
    }
    const ran = await client.run('invite', ...INSTALLATION, '--json')
    expect([ran.exit, askedBefore]).toEqual([0, 0])
    const [, operationId] = /^operation (opn_\w{26})\n$/.exec(ran.err) ?? []
    const [request] = issuances()
    expect(request!.headers['idempotency-key']).toBe(operationId)
    expect(JSON.parse(request!.body)).toEqual({
      operatorName: 'ana',
      role: 'developer',
      scope: { kind: 'installation', projectId: null, environmentId: null },
    })
    expect(JSON.parse(ran.out)).toMatchObject({
      operationId,
      code: INVITATION,
      codeFile: null,
      secretShownOnce: true,
      replayed: false,
    })
    const human = await client.run('invite', ...INSTALLATION)
    expect(human.out.split('\n')).toContain(INVITATION)
    expect(human.out).toContain(`\n  svc login --url ${server.origin}\n`)
    expect(human.err).toContain('SERVICE_PUBLIC_MANAGEMENT_URL')
  })

  it('prints the public management URL', async () => {
    server.managementOrigin = 'https://manage.example.com'
    await client.login(server)
    const { fetch } = client
    client.fetch = (url, init) =>
      fetch(url.replace('https://manage.example.com', server.origin), init)
    const human = await client.run('invite', ...INSTALLATION)
    expect(human.out).toContain('\n  svc login --url https://manage.example.com\n')
    expect(human.err).not.toContain('SERVICE_PUBLIC_MANAGEMENT_URL')
    const json = await client.run('invite', ...INSTALLATION, '--json')
    expect(JSON.parse(json.out).loginUrl).toBe('https://manage.example.com')
  })

  it('writes the code to a new private file instead', async () => {
    const ran = await invite('--code-out', 'ana.code', '--json')
    const file = join(client.home, 'ana.code')
    expect(ran.out).not.toContain(INVITATION)
    expect(JSON.parse(ran.out)).toMatchObject({ code: null, codeFile: file })
    expect(readFileSync(file, 'utf8')).toBe(`${INVITATION}\n`)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('requests no code that it cannot store, and leaves no file after a rejection', async () => {
    writeFileSync(join(client.home, 'taken'), 'x')
    expect((await invite('--code-out', 'taken')).exit).toBe(1)
    expect(issuances()).toEqual([])
    server.intercept = () => failure('PLATFORM_ACCESS_DENIED')
    expect((await invite('--code-out', 'ana.code')).exit).toBe(3)
    expect(existsSync(join(client.home, 'ana.code'))).toBe(false)
  })

  it('uses the scope of the linked root', async () => {
    const { projectId, environmentId } = server
    const root = ['--root', 'root']
    await client.run('invite', ...ANA, '--scope', 'environment', ...root)
    await client.run('invite', ...ANA, '--scope', 'project', ...root)
    expect(issuances().map(({ body }) => JSON.parse(body).scope)).toEqual([
      { kind: 'environment', projectId, environmentId },
      { kind: 'project', projectId, environmentId: null },
    ])
  })

  it('uses the given scope without a root', async () => {
    const [projectId, environmentId] = [newId.make('prj'), newId.make('env')]
    const project = ['--project-id', projectId]
    const environment = [...project, '--environment-id', environmentId]
    await client.run('invite', ...ANA, '--scope', 'project', ...project)
    await client.run('invite', ...ANA, '--scope', 'environment', ...environment)
    expect(issuances().map(({ body }) => JSON.parse(body).scope)).toEqual([
      { kind: 'project', projectId, environmentId: null },
      { kind: 'environment', projectId, environmentId },
    ])
  })

  it.each([
    [['--scope', 'world'], '--scope must be one of installation, project, environment.'],
    [['--scope', 'installation', '--project-id', newId.make('prj')], 'takes no identifier'],
    [['--scope', 'project', '--environment-id', newId.make('env')], 'takes no --environment-id'],
    [['--scope', 'environment', '--project-id', newId.make('prj')], 'together, or neither'],
    [['--scope', 'environment', '--environment-id', newId.make('env')], 'together, or neither'],
    [['--scope', 'project', '--project-id', newId.make('env')], 'needs a prj_ identifier'],
    [['--scope', 'installation', '--operation-id', 'opn_1'], 'needs an opn_ identifier'],
  ])('sends no request with %j', async (options, message) => {
    const ran = await client.run('invite', ...ANA, ...options)
    expect([ran.exit, ran.err]).toEqual([2, expect.stringContaining(message)])
    expect(server.requests).toEqual([])
  })

  it('rejects invalid names and unknown roles', async () => {
    const scope = ['--scope', 'installation']
    const role = ['invite', '--operator-name', 'a', '--role', 'admin', ...scope]
    const name = ['invite', '--operator-name', 'a\nb', '--role', 'owner', ...scope]
    expect((await client.run(...role)).err).toContain('--role must be one of owner, operator')
    expect((await client.run(...name)).err).toContain(
      '--operator-name needs 1 to 128 printable characters',
    )
  })

  it('rejects a root that is linked to another server', async () => {
    const link = join(client.root, 'management.json')
    writeFileSync(link, '{"managementOrigin":"https://other.test","version":1}\n')
    const ran = await client.run('invite', ...ANA, '--scope', 'project', '--root', 'root')
    expect([ran.exit, server.requests]).toEqual([4, []])
  })
})

describe('an issuance whose response is lost', () => {
  it('an issuance is sent again with equal bytes if it was not committed', async () => {
    let left = 2
    server.intercept = ({ method }) => (method === 'POST' && left-- > 0 ? 'drop' : null)
    const ran = await invite('--json')
    expect([ran.exit, JSON.parse(ran.out).code]).toEqual([0, INVITATION])
    const [first, ...others] = issuances()
    expect(others).toHaveLength(2)
    for (const other of others) {
      expect(other.body).toBe(first!.body)
      expect(other.headers['idempotency-key']).toBe(OPERATION)
    }
    const lookUps = server.requestsTo('GET', `/v1/access/invitation-operations/${OPERATION}`)
    expect(lookUps).toHaveLength(2)
  })

  it.each([
    ['lost', 'drop-after' as const],
    ['one that nobody can read', { status: 201, text: '{"code":' }],
  ])('ends with 9 and names what to revoke if it was committed (%s)', async (_, after) => {
    server.intercept = (request) => {
      if (request.path !== INVITATIONS) return null
      server.intercept = () => null
      if (after === 'drop-after') return after
      void server.identity.route(`POST ${INVITATIONS}`, request, {})
      return after
    }
    const ran = await invite('--code-out', 'ana.code', '--json')
    expect(ran.exit).toBe(9)
    const { code, next } = JSON.parse(ran.out).error
    expect(code).toBe('CLIENT_CODE_UNDELIVERED')
    expect(next).toContain(`svc invitations revoke ${invitationId()}`)
    expect(issuances()).toHaveLength(1)
    expect(existsSync(join(client.home, 'ana.code'))).toBe(false)
  })

  it('an issuance is looked up if the server calls its outcome uncertain', async () => {
    let left = 1
    server.intercept = ({ method }) =>
      method === 'POST' && left-- > 0 ? failure('PLATFORM_IDENTITY_RESULT_UNCERTAIN') : null
    expect((await invite()).exit).toBe(0)
    expect(issuances()).toHaveLength(2)
  })

  it('ends with 9 and names the Operation ID if the look-up fails', async () => {
    server.intercept = ({ method }) =>
      method === 'POST' ? 'drop-after' : failure('PLATFORM_INTERNAL')
    const ran = await invite()
    expect([ran.exit, ran.err]).toEqual([
      9,
      expect.stringContaining(`svc invitations show ${OPERATION}`),
    ])
    expect(ran.err).toContain('PLATFORM_IDENTITY_RESULT_UNCERTAIN')
  })

  it.each([['POST'], ['GET']])(
    'names the Operation ID after an interrupt of its %s',
    async (at) => {
      server.intercept = ({ method }) => (method === 'POST' && at === 'GET' ? 'drop-after' : null)
      server.gate = async ({ method }) => {
        if (method !== at) return
        client.interrupt()
        await new Promise(() => {})
      }
      const ran = await invite()
      const said = `svc invitations show ${OPERATION}`
      expect([ran.exit, ran.err]).toEqual([130, expect.stringContaining(said)])
    },
  )

  it('an issuance is abandoned after a few attempts', async () => {
    server.intercept = ({ method }) => (method === 'POST' ? 'drop' : null)
    const ran = await invite()
    expect([ran.exit, issuances().length]).toEqual([9, 3])
  })

  it('an issuance that is repeated with its Operation ID has no code', async () => {
    await invite()
    const ran = await invite()
    expect([ran.exit, ran.err]).toEqual([9, expect.stringContaining(invitationId())])
    expect(ran.out).toBe('')
  })

  it('conflicts when it is repeated for another operator', async () => {
    await invite()
    const other = ['invite', '--operator-name', 'bob', '--role', 'owner', '--scope', 'installation']
    const ran = await client.run(...other, '--operation-id', OPERATION)
    expect([ran.exit, ran.err]).toEqual([
      4,
      expect.stringContaining('PLATFORM_INVITATION_OPERATION_REUSED'),
    ])
  })
})

describe('svc invitations', () => {
  it('show the state of an invitation without its code', async () => {
    await invite()
    const ran = await client.run('invitations', 'show', OPERATION, '--json')
    expect(JSON.parse(ran.out)).toMatchObject({ invitationId: invitationId(), state: 'pending' })
    expect(ran.out).not.toContain(INVITATION)
    const human = await client.run('invitations', 'show', OPERATION)
    expect(human.out).toMatch(/^opi_\w{26} {2}pending\nana as developer at installation\n/)
    expect((await client.run('invitations', 'show', newId.make('opn'))).exit).toBe(7)
  })

  it('revoke an invitation any number of times', async () => {
    await invite()
    for (let i = 0; i < 2; i++) {
      expect((await client.run('invitations', 'revoke', invitationId())).exit).toBe(0)
    }
    const shown = await client.run('invitations', 'show', OPERATION, '--json')
    expect(JSON.parse(shown.out).state).toBe('revoked')
    expect((await client.run('invitations', 'revoke', newId.make('opi'))).exit).toBe(7)
  })

  it('svc invitations cannot revoke a used invitation', async () => {
    await invite()
    server.identity.invitations.get(OPERATION)!.state = 'consumed'
    const ran = await client.run('invitations', 'revoke', invitationId())
    expect([ran.exit, ran.err]).toEqual([4, expect.stringContaining('The invitation was used')])
  })

  it('need an identifier of the right kind', async () => {
    server.requests.length = 0
    for (const words of [
      ['show', newId.make('opi')],
      ['revoke', newId.make('opn')],
      ['revoke', INVITATION],
      ['show'],
    ]) {
      const ran = await client.run('invitations', ...words)
      expect(ran.exit).toBe(2)
      expect(ran.err).not.toContain(INVITATION)
    }
    expect(server.requests).toEqual([])
  })
})
