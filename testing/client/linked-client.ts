/** A client that is linked to a fake server, as the tests of the client's commands need it. */
import { onTestFinished } from 'vitest'
import type { Json } from '../../src/value/strict-json.ts'
import { APPLICATION_KEY, FakeServer } from './fake-server.ts'
import { TestClient } from './test-client.ts'

export interface LinkedClient {
  /** The server, with an empty list of requests. */
  readonly server: FakeServer
  readonly client: TestClient
}

/** Links a client to a server. Both are removed after the test. */
export async function linkedClient(): Promise<LinkedClient> {
  const server = await new FakeServer().start()
  onTestFinished(() => server.stop())
  const client = new TestClient()
  onTestFinished(() => client[Symbol.dispose]())
  await client.linked(server)
  server.requests.length = 0
  return { server, client }
}

/** Links a client that calls these Functions with the Application Key in the variable APP_KEY. */
export async function linkedCaller(functions: readonly Json[]): Promise<LinkedClient> {
  const { server, client } = await linkedClient()
  client.variables.APP_KEY = APPLICATION_KEY
  server.functions = [...functions]
  return { server, client }
}

/** Returns a Function as the catalog has it: without arguments, for every caller. */
export function catalogFunction(
  name: string,
  kind: 'query' | 'mutation' | 'action',
  more: Readonly<Record<string, Json>> = {},
): Json {
  return {
    name,
    kind,
    visibility: 'public',
    clients: [],
    auth: 'none',
    errors: {},
    arguments: {},
    returns: { type: 'any' },
    uses: { network: [], secrets: [], storage: 'none' },
    ...more,
  }
}
