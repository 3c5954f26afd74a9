/** Tests POST /v1/action through the whole application origin: authorization and responses. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest } from '../../../testing/products.ts'
import { Fault } from '../../errors/fault.ts'
import { INVOCATIONS } from './routes.ts'

const action = (name: string, more: object = {}) =>
  functionManifest(name, {
    kind: 'action',
    clients: ['confidential'],
    returns: { type: 'any' },
    uses: { network: [], secrets: [] },
    ...more,
  })

const CODE = { code: { type: 'string' } } as const

let gateway: TestGateway
beforeAll(async () => {
  gateway = await openTestGateway({
    functions: [
      functionManifest('a.add', { kind: 'mutation', returns: { type: 'any' } }),
      functionManifest('a.all', { returns: { type: 'any' } }),
      action('a.both'),
      action('a.hidden', { visibility: 'internal', clients: [] }),
      action('a.late'),
      action('a.others', { clients: ['public'] }),
      functionManifest('a.torn', { kind: 'mutation', arguments: CODE }),
      action('a.writes', { arguments: CODE }),
    ],
    tables: [{ name: 'notes', fields: { n: { type: 'int64' } }, indexes: [] }],
    handlers: {
      'a.add': (ctx) => ctx.insert('notes', { n: { $i: '1' } }),
      'a.all': async (ctx) => (await ctx.range({ table: 'notes' })).documents.length,
      'a.both': async (ctx) => {
        await ctx.run('mutation', 'a.add')
        return ctx.run('query', 'a.all')
      },
      'a.torn': (_, { code }) => {
        throw new Fault(code)
      },
      'a.writes': (ctx, input) => ctx.run('mutation', 'a.torn', input),
      'a.late': () => {
        throw new Fault('DEADLINE_EXCEEDED')
      },
    },
  })
})
afterAll(() => gateway.close())

async function post(path: string, name: string, more: object = {}) {
  const body = {
    version: 1,
    target: 'channel:production',
    function: name,
    arguments: { type: 'object', value: [] },
    ...more,
  }
  const request = new Request(`https://app.test${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-key': gateway.key },
    body: JSON.stringify(body),
  })
  const times: string[] = []
  const response = await gateway.application.fetch(request, {
    peer: '192.0.2.1',
    takeTime: () => times.push('taken'),
    returnTime: () => times.push('returned'),
  })
  return { response, times, body: (await response.json()) as Record<string, unknown> }
}

const codeOf = ({ body }: { body: Record<string, unknown> }) =>
  (body.error as { code: string } | undefined)?.code

describe('POST /v1/action', () => {
  test('an Action returns the complete envelope', async () => {
    const { response, body } = await post('/v1/action', 'a.both')
    expect(body).toEqual({
      version: 1,
      status: 'ok',
      requestId: response.headers.get('x-service-request-id'),
      releaseId: gateway.releaseId,
      result: { type: 'float64', value: '3ff0000000000000' },
      metadata: { kind: 'action', schedulesCreated: '0' },
    })
    expect(response.headers.get('x-service-invocation-id')).toMatch(/^ivc_/)
  })

  const rejected: readonly (readonly [string, string, string, object, number, string])[] = [
    ['an Action that names a Query', '/v1/action', 'a.all', {}, 404, 'FUNCTION_NOT_FOUND'],
    ['an Action at the path of Queries', '/v1/query', 'a.both', {}, 404, 'FUNCTION_NOT_FOUND'],
    ['an internal Action', '/v1/action', 'a.hidden', {}, 404, 'FUNCTION_NOT_FOUND'],
    ['an Action of other clients', '/v1/action', 'a.others', {}, 403, 'AUTH_POLICY_DENIED'],
    [
      'an Action with an operation ID',
      '/v1/action',
      'a.both',
      { operationId: 'x' },
      400,
      'REQUEST_INVALID',
    ],
  ]
  test.each(rejected)('a request for %s is rejected', async (_, path, name, more, status, code) => {
    const reply = await post(path, name, more)
    expect([reply.response.status, codeOf(reply), reply.times]).toEqual([status, code, []])
  })

  test.each([
    ['a successful Action', 'a.both', 200],
    ['a failing Action', 'a.late', 504],
  ])('the idle timeout is suspended for %s, and restored', async (_, name, status) => {
    const { response, times } = await post('/v1/action', name)
    expect([response.status, times]).toEqual([status, ['taken', 'returned']])
  })

  test.each(['WRITE_CONFLICT', 'RESULT_UNCERTAIN'])(
    'an Action does not fail with %s when a Mutation that it calls does',
    async (code) => {
      const argument = { key: 'code', value: { type: 'string', value: code } }
      const reply = await post('/v1/action', 'a.writes', {
        arguments: { type: 'object', value: [argument] },
      })
      expect([reply.response.status, codeOf(reply)]).toEqual([500, 'FUNCTION_FAILED'])
      const { errors } = INVOCATIONS.find(({ name }) => name === 'action')!
      expect(errors).not.toContain(code)
    },
  )

  test('an exceeded deadline of an Action is not retryable and has the invocation ID', async () => {
    const { response, body } = await post('/v1/action', 'a.late')
    expect(response.status).toBe(504)
    expect(body.error).toMatchObject({ code: 'DEADLINE_EXCEEDED', retryable: false })
    expect(response.headers.get('x-service-invocation-id')).toMatch(/^ivc_/)
  })
})
