/** Responses of Mutations outside of the rules: they fail before anything is committed. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import { ask, endpointManifest } from '../../../../testing/http/endpoints.ts'
import { mount } from '../../../../testing/http/hooks.ts'
import { functionManifest } from '../../../../testing/products.ts'
import { realSystem } from '../../../system/system.ts'
import { HTTP_RESPONSE } from '../../../value/http/responses.ts'

const system = realSystem()
const kind = { type: 'string' } as const
const RESPONSES: Readonly<Record<string, object>> = {
  cached: { json: 1, headers: { 'Cache-Control': 'public, max-age=60' } },
  cookie: { headers: { 'Set-Cookie': 'a=b' } },
  html: { body: '<script>', contentType: 'text/html' },
  made: { status: 201 },
  status: { status: 299 },
}

let runs = 0
let gateway: TestGateway
beforeAll(async () => {
  gateway = await openTestGateway({
    functions: [
      functionManifest('api.count', { returns: { type: 'int64' } }),
      functionManifest('api.put', {
        kind: 'mutation',
        arguments: { kind },
        returns: HTTP_RESPONSE,
      }),
    ],
    tables: [{ name: 'notes', fields: { kind }, indexes: [] }],
    http: [
      endpointManifest('count', { function: 'api.count' }),
      endpointManifest('put', { function: 'api.put', methods: ['POST'] }),
    ],
    handlers: {
      'api.count': async (context) => {
        const { documents } = await context.range({ table: 'notes' })
        return { $i: String(documents.length) }
      },
      'api.put': async (context, given: { kind: string }) => {
        runs += 1
        await context.insert('notes', given)
        return RESPONSES[given.kind]
      },
    },
  })
  mount(gateway, 'main')
})
afterAll(() => gateway.close())

const stored = async () => (await ask(gateway, '/main/count')).json()
const put = (name: string, operationId = system.ids.make('opn')) =>
  ask(gateway, '/main/put', {
    method: 'POST',
    body: { kind: name },
    headers: { 'idempotency-key': operationId },
  })

test.each(['cached', 'cookie', 'html', 'status'])(
  'a Mutation that says what no response may commits nothing: %s',
  async (name) => {
    const before = await stored()
    const operationId = system.ids.make('opn')
    for (let attempt = 1; attempt <= 2; attempt++) {
      const runsBefore = runs
      const response = await put(name, operationId)
      expect([response.status, await response.json()]).toMatchObject([
        500,
        { error: { code: 'FUNCTION_FAILED' } },
      ])
      // A repeat is another attempt: no result was recorded.
      expect([runs - runsBefore, await stored()]).toEqual([1, before])
    }
    expect([(await put('made')).status, await stored()]).toEqual([201, before + 1])
  },
)
