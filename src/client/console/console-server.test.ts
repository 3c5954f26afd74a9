import { spawn } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type Answered,
  ASSET,
  DOCUMENT,
  type HeaderMap,
  headersOfCall,
  rawRequest,
} from '../../../testing/client/raw-requests.ts'
import { Fault } from '../../errors/fault.ts'
import { TestSystem } from '../../system/system.ts'
import { CAPABILITIES, capabilitiesOfRole } from '../../value/capabilities.ts'
import { INSTALLATION } from '../../value/scope.ts'
import { SECRET_FORMAT } from '../../wire/fields.ts'
import { deriveSession } from '../../wire/operations/identity/sessions.ts'
import type { ManagementOperation } from '../../wire/operations/operation.ts'
import { jsonSchemaOf } from '../../wire/reading/json-schema.ts'
import { isSchema } from '../../wire/schema.ts'
import type { AnyInput } from '../requests/operation-requests.ts'
import { CALL_BYTES_MAX, CALLS_MAX, ConsoleServer, STREAMS_MAX } from './console-server.ts'
import { type ConsoleEnvironment, ConsoleSessions } from './console-sessions.ts'
import { CONSOLE_OPERATIONS } from './operations.ts'
import { PageAccess } from './page-access.ts'
import { PageCalls } from './page-calls.ts'

const system = new TestSystem()
const ENVIRONMENT: ConsoleEnvironment = {
  projectId: system.ids.make('prj'),
  environmentId: system.ids.make('env'),
  name: 'here',
  capabilities: CAPABILITIES,
}

const PARAMS = { operatorId: system.ids.make('opr') }

interface Sent {
  readonly operation: string
  readonly input: AnyInput
}

let sent: Sent[]
let derived: { capabilities: readonly string[]; kind: string }[]
let ended: number
let uses: number
let repeated: number
let access: PageAccess
let server: ConsoleServer
/** Answers the operations of the page. */
let answer: (operation: ManagementOperation, input: AnyInput) => Promise<unknown>

beforeEach(async () => {
  ;[sent, derived, ended, uses, repeated] = [[], [], 0, 0, 0]
  answer = async () => ({ version: 1 })
  access = new PageAccess((length) => crypto.getRandomValues(new Uint8Array(length)))
  const session = {
    anyCall: async (operation: ManagementOperation, input: AnyInput) => {
      sent.push({ operation: operation.name, input })
      return answer(operation, input)
    },
    anyLines: async (
      operation: ManagementOperation,
      onLine: (line: string) => Promise<unknown>,
      input: AnyInput,
    ) => {
      sent.push({ operation: operation.name, input })
      await onLine('{"heartbeat":true,"cursor":null}')
      await answer(operation, input)
    },
  }
  const sessions = new ConsoleSessions(
    async (capabilities, { kind }) => {
      derived.push({ capabilities, kind })
      const end = async (): Promise<void> => {
        ended++
      }
      return { session: session as never, end }
    },
    [ENVIRONMENT],
    INSTALLATION,
  )
  server = await ConsoleServer.open({
    access,
    calls: new PageCalls(sessions, system),
    assets: {
      'index.html': { type: 'text/html', text: '<!doctype html>' },
      'console.js': { type: 'text/javascript', text: '1' },
    },
    about: () => ({ version: 'test' }),
    onUse: () => uses++,
    onRepeatedStart: () => repeated++,
  })
})

afterEach(() => server.close())

const callHeaders = (): HeaderMap => headersOfCall(server.origin)

function raw(method: string, path: string, headers: HeaderMap, body = ''): Promise<Answered> {
  return rawRequest(server.origin, { method, path, headers, body })
}

/** Opens the page as its browser does, and returns the cookie. */
async function openPage(): Promise<string> {
  const started = await raw('GET', access.startPath.reveal(), DOCUMENT)
  expect(started.status).toBe(303)
  const cookie = /set-cookie: ([^;]+)/i.exec(started.headers)?.[1]
  // The response was read in lower case; the access has the cookie as it is.
  expect(cookie).toBeDefined()
  return access.setCookie.split(';')[0]!
}

const BODY = JSON.stringify({ environmentId: ENVIRONMENT.environmentId })

function post(name: string, cookie: string, more: HeaderMap = {}, body = BODY): Promise<Answered> {
  return raw('POST', `${access.basePath}${name}`, { ...callHeaders(), cookie, ...more }, body)
}

describe('the start URL', () => {
  test('the start URL gives one browser a cookie for a secret path', async () => {
    const started = await raw('GET', access.startPath.reveal(), DOCUMENT)
    expect(started.status).toBe(303)
    expect(started.headers).toContain('httponly')
    expect(started.headers).toContain('samesite=strict')
    expect(access.setCookie).toContain(`Path=${access.basePath};`)
    expect(access.basePath.length).toBeGreaterThan(40)
    const cookie = access.setCookie.split(';')[0]!
    const page = await raw('GET', access.basePath, { ...DOCUMENT, cookie })
    expect([page.status, page.body]).toEqual([200, expect.stringContaining('<!doctype html>')])
    expect(uses).toBe(2)
  })

  test('a second use ends the page that the first one opened', async () => {
    const cookie = await openPage()
    expect((await post('about', cookie)).status).toBe(200)
    expect((await raw('GET', access.startPath.reveal(), DOCUMENT)).status).toBe(410)
    expect(repeated).toBe(1)
    expect((await post('about', cookie)).status).toBe(403)
    const before = access.startPath.reveal()
    access.renew()
    expect(access.startPath.reveal()).not.toBe(before)
    expect((await raw('GET', before, DOCUMENT)).status).toBe(403)
    expect((await post('about', cookie)).status).toBe(403)
    expect((await post('about', await openPage())).status).toBe(200)
  })

  test('a wrong token, a foreign link and a browser that loads ahead use up nothing', async () => {
    const path = access.startPath.reveal()
    expect((await raw('GET', '/start/wrong', DOCUMENT)).status).toBe(403)
    const foreign = { ...DOCUMENT, 'sec-fetch-site': 'cross-site' }
    expect((await raw('GET', path, foreign)).status).toBe(403)
    expect((await raw('GET', path, {})).status).toBe(403)
    expect((await raw('GET', path, { ...DOCUMENT, 'sec-purpose': 'prefetch' })).status).toBe(403)
    expect((await raw('POST', path, DOCUMENT)).status).toBe(403)
    expect((await raw('GET', path, DOCUMENT)).status).toBe(303)
  })
})

describe('every request', () => {
  test('a request of another page, name or program is rejected', { tags: ['slow'] }, async () => {
    const cookie = await openPage()
    const rejected: readonly [string, HeaderMap][] = [
      ['DNS rebinding', { host: `attacker.test:${new URL(server.origin).port}` }],
      ['localhost', { host: `localhost:${new URL(server.origin).port}` }],
      ['a repeated Host', { host: [new URL(server.origin).host, new URL(server.origin).host] }],
      ['another origin', { origin: 'http://127.0.0.1:1' }],
      ['no origin', { origin: undefined }],
      ['an opaque origin', { origin: 'null' }],
      ['another site', { 'sec-fetch-site': 'cross-site' }],
      ['another port', { 'sec-fetch-site': 'same-site' }],
      ['no site', { 'sec-fetch-site': undefined }],
      ['a frame', { 'sec-fetch-dest': 'iframe' }],
      ['a form', { 'sec-fetch-mode': 'navigate' }],
      ['a body of a form', { 'content-type': 'text/plain' }],
      ['no cookie', { cookie: undefined }],
      ['a wrong cookie', { cookie: 'svc-console=wrong' }],
    ]
    for (const [name, headers] of rejected) {
      const { status } = await post('call/readHealth', cookie, headers)
      // Node rejects a repeated Host by itself.
      expect([name, [400, 403].includes(status)]).toEqual([name, true])
    }
    expect(sent).toEqual([])
    expect((await post('call/readHealth', cookie)).status).toBe(200)
    expect(sent.map(({ operation }) => operation)).toEqual(['readHealth'])
  })

  test('a wrong path is rejected, also with the cookie', async () => {
    const cookie = await openPage()
    const other = `/${'a'.repeat(43)}/`
    const headers = { ...callHeaders(), cookie }
    expect((await raw('POST', `${other}about`, headers, BODY)).status).toBe(403)
    expect((await raw('GET', other, { ...DOCUMENT, cookie })).status).toBe(403)
    expect((await raw('GET', `${access.basePath}nothing.js`, { ...ASSET, cookie })).status).toBe(
      404,
    )
    const inherited = `${access.basePath}__proto__`
    expect((await raw('GET', inherited, { ...ASSET, cookie })).status).toBe(404)
  })

  test('every response has the policy of the page', async () => {
    const cookie = await openPage()
    for (const { headers } of [
      await raw('GET', access.basePath, { ...DOCUMENT, cookie }),
      await raw('GET', `${access.basePath}console.js`, { ...ASSET, cookie }),
      await post('about', cookie),
      await raw('GET', '/start/wrong', DOCUMENT),
      await raw('GET', '/', {}),
    ]) {
      expect(headers).toContain("content-security-policy: default-src 'none'; script-src 'self'")
      expect(headers).toContain("frame-ancestors 'none'")
      expect(headers).not.toContain('unsafe-')
      expect(headers).not.toContain('access-control-allow')
      for (const line of [
        'cache-control: no-store',
        'referrer-policy: no-referrer',
        'x-content-type-options: nosniff',
        'cross-origin-opener-policy: same-origin',
        'cross-origin-resource-policy: same-origin',
      ]) {
        expect(headers).toContain(line)
      }
    }
  })

  test.skipIf(process.getuid?.() !== 0 || process.platform !== 'linux')(
    'another user of this machine gets no answer (needs root on Linux)',
    async () => {
      const { host, port } = new URL(server.origin)
      const lines = Object.entries({ host, ...DOCUMENT, connection: 'close' }).map(
        ([name, value]) => `${name}: ${value}`,
      )
      const request = [`GET ${access.startPath.reveal()} HTTP/1.1`, ...lines, '', ''].join('\\r\\n')
      const script = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf '${request}' >&3; cat <&3`
      const asUser = (uid: number): Promise<string> =>
        new Promise((resolve) => {
          const child = spawn('/bin/bash', ['-c', `${script}`], {
            uid,
            gid: uid,
          })
          let printed = ''
          child.stdout.on('data', (text) => {
            printed += text
          })
          child.on('close', () => resolve(printed))
        })
      expect(await asUser(65_534)).toBe('')
      expect(await asUser(0)).toContain('303')
    },
  )
})

describe('a call', () => {
  test('a call is sent for the Environment of the session with a new Operation ID', async () => {
    const cookie = await openPage()
    answer = async () => ({ changed: true })
    const body = JSON.stringify({
      environmentId: ENVIRONMENT.environmentId,
      params: { table: 'notes', documentId: 'notes_1', projectId: 'prj_other' },
      body: { a: 1 },
    })
    const { status, body: text } = await post('call/deleteDocument', cookie, {}, body)
    expect([status, JSON.parse(text)]).toEqual([200, { result: { changed: true } }])
    expect(sent[0]!.input.params).toEqual({
      table: 'notes',
      documentId: 'notes_1',
      projectId: ENVIRONMENT.projectId,
      environmentId: ENVIRONMENT.environmentId,
    })
    expect(sent[0]!.input.operationId).toMatch(/^opn_/)
    expect(derived).toHaveLength(1)
    expect(derived[0]!.kind).toBe('environment')
    expect(derived[0]!.capabilities).not.toContain('operators:manage')
  })

  test('a call for operators goes to a session that has that capability alone', async () => {
    await post('call/listOperators', await openPage())
    expect(derived).toEqual([{ capabilities: ['operators:manage'], kind: 'installation' }])
  })

  test('a call that gives a role has a session of its own with that role', async () => {
    const cookie = await openPage()
    const { environmentId } = ENVIRONMENT
    const scope = { kind: 'project', projectId: ENVIRONMENT.projectId, environmentId: null }
    const invitation = { operatorName: 'ana', role: 'observer', scope }
    const change = { scope, role: 'observer', expectedCapabilities: null }
    const given = ['operators:manage', ...capabilitiesOfRole('observer')]
    const sending = async (name: string, body: object) =>
      post(`call/${name}`, cookie, {}, JSON.stringify({ environmentId, params: PARAMS, body }))
    await sending('issueInvitation', invitation)
    await sending('changeGrant', change)
    expect(derived).toEqual([
      { capabilities: given, kind: 'project' },
      { capabilities: given, kind: 'installation' },
    ])
    expect(ended).toBe(2)
    answer = async () => Promise.reject(new Fault('PLATFORM_ACCESS_DENIED'))
    expect((await sending('issueInvitation', invitation)).status).toBe(403)
    expect(ended).toBe(3)
  })

  test('a call that takes a grant away has no right to give one', async () => {
    const cookie = await openPage()
    const { environmentId } = ENVIRONMENT
    const body = { scope: INSTALLATION, role: null, expectedCapabilities: null }
    const text = JSON.stringify({ environmentId, params: PARAMS, body })
    expect((await post('call/changeGrant', cookie, {}, text)).status).toBe(200)
    expect(derived).toEqual([{ capabilities: ['operators:manage'], kind: 'installation' }])
  })

  test('an invitation whose response was lost can be looked up', async () => {
    const cookie = await openPage()
    const { environmentId } = ENVIRONMENT
    answer = async () => Promise.reject(new Fault('CLIENT_RESULT_UNCERTAIN'))
    const body = { operatorName: 'ana', role: 'observer', scope: INSTALLATION }
    const text = JSON.stringify({ environmentId, body })
    const { body: failure } = await post('call/issueInvitation', cookie, {}, text)
    const { operationId } = sent[0]!.input
    expect(JSON.parse(failure).error.next).toContain(`svc invitations show ${operationId}`)
  })

  test('a call reaches the operations of the list alone, and none that gives a token', {
    tags: ['slow'],
  }, async () => {
    const cookie = await openPage()
    for (const name of [
      'deriveSession',
      'refreshSession',
      'exchangeCode',
      'logInExternally',
      'publishWorkspace',
      'putObject',
      'reconcileGrants',
      'constructor',
      '__proto__',
      '',
    ]) {
      const { status, body } = await post(`call/${name}`, cookie)
      expect([name, status, JSON.parse(body).error.code]).toEqual([name, 400, 'CLIENT_USAGE'])
    }
    expect(sent).toEqual([])
    const paths = Object.values(CONSOLE_OPERATIONS).map(({ path }) => path as string)
    expect(paths.filter((path) => /derived|exchange|refresh|oidc|managed/.test(path))).toEqual([])
  })

  test('no response has a secret that no person asked for', () => {
    const answersSecret = ({ replies }: ManagementOperation): boolean =>
      Object.values(replies).some(
        (reply) =>
          isSchema(reply) && JSON.stringify(jsonSchemaOf(reply)).includes(`"${SECRET_FORMAT}"`),
      )
    expect(answersSecret(deriveSession)).toBe(true)
    const secret = Object.values<ManagementOperation>(CONSOLE_OPERATIONS).filter(answersSecret)
    expect(secret.map(({ name }) => name).sort()).toEqual([
      'createCredential',
      'issueInvitation',
      'issueStorageKey',
      'revealKey',
      'rotateCredential',
      'rotateStorageKey',
    ])
    expect(secret.map(({ cache }) => cache)).toEqual(secret.map(() => 'no-store, max-age=0'))
  })

  test('a new key reaches the page in a response that nothing stores', async () => {
    const key = 'rk_sec_v1_of_this_test'
    answer = async () => ({ version: 1, key, secretShownOnce: true })
    const params = { clientId: system.ids.make('app') }
    const body = JSON.stringify({ environmentId: ENVIRONMENT.environmentId, params, body: {} })
    const made = await post('call/createCredential', await openPage(), {}, body)
    expect(JSON.parse(made.body).result.key).toBe(key)
    expect(made.headers).toContain('cache-control: no-store')
    expect(made.headers).not.toContain(key)
  })

  test('a call with parts of another form is rejected before it is sent', async () => {
    const cookie = await openPage()
    const { environmentId } = ENVIRONMENT
    const other = system.ids.make('env')
    for (const body of [
      '',
      '[]',
      '{',
      '{"environmentId":1}',
      JSON.stringify({ environmentId: other }),
      JSON.stringify({ environmentId, params: { table: 1 } }),
      JSON.stringify({ environmentId, query: { target: {} } }),
      JSON.stringify({ environmentId, params: [] }),
      JSON.stringify({ environmentId, params: { table: 'notes' } }),
    ]) {
      const { status } = await post('call/readDocument', cookie, {}, body)
      expect([body, status]).toEqual([body, 400])
    }
    expect(sent).toEqual([])
  })

  test('a failure is described as on the command line', async () => {
    answer = async () => {
      throw new Fault('PRODUCT_CAS_CONFLICT', { violations: [{ path: 'a', rule: 'b' }] })
    }
    const { status, body } = await post('call/readHealth', await openPage())
    expect(status).toBe(409)
    expect(JSON.parse(body).error).toMatchObject({
      code: 'PRODUCT_CAS_CONFLICT',
      next: expect.any(String),
      violations: [{ path: 'a', rule: 'b' }],
    })
  })

  test('a call larger than the bound is rejected', async () => {
    const cookie = await openPage()
    const large = `{"x":"${'x'.repeat(CALL_BYTES_MAX)}"}`
    expect((await post('call/readHealth', cookie, {}, large)).status).toBe(413)
    expect(sent).toEqual([])
  })

  test('a call beyond those in flight is rejected, and so is a stream', {
    tags: ['slow'],
  }, async () => {
    const cookie = await openPage()
    const gate = Promise.withResolvers<void>()
    answer = async () => {
      await gate.promise
      return {}
    }
    const calls = Array.from({ length: CALLS_MAX }, () => post('call/readHealth', cookie))
    const streams = Array.from({ length: STREAMS_MAX }, () => post('follow', cookie))
    await expect.poll(() => sent.length).toBe(CALLS_MAX + STREAMS_MAX)
    expect((await post('call/readHealth', cookie)).status).toBe(503)
    expect((await post('follow', cookie)).status).toBe(503)
    gate.resolve()
    const statuses = (await Promise.all([...calls, ...streams])).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect((await post('call/readHealth', cookie)).status).toBe(200)
  })

  test('a call of a timer is not a use of the console', async () => {
    const cookie = await openPage()
    const before = uses
    await post('call/readHealth', cookie, { 'x-console-background': 'yes' })
    expect(uses).toBe(before)
    await post('call/readHealth', cookie)
    expect(uses).toBe(before + 1)
  })
})

test('the sessions are revoked at the end', async () => {
  await post('call/readHealth', await openPage())
  const sessions = new ConsoleSessions(
    async () => ({
      session: {} as never,
      end: async () => {
        ended++
      },
    }),
    [ENVIRONMENT],
    null,
  )
  await Promise.all([sessions.of(ENVIRONMENT), sessions.of(ENVIRONMENT)])
  await sessions.end()
  expect(ended).toBe(1)
})

test('an operator who manages no operators gives no role', async () => {
  const derive = async () => Promise.reject(new Error('nothing is derived'))
  const sessions = new ConsoleSessions(derive, [ENVIRONMENT], null)
  const giving = sessions.whileDelegating('observer', INSTALLATION, async () => 'given')
  await expect(giving).rejects.toMatchObject({ code: 'PLATFORM_ACCESS_DENIED' })
})
