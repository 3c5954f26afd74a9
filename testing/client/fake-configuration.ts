/** The configuration routes of the fake server: it keeps a revision and accepts every change. */
import type { Json } from '../../src/value/strict-json.ts'
import type { Recorded, Reply } from './fake-server.ts'

const MICROS = '1800000000000000'

export class FakeConfiguration {
  /** Revision of the whole configuration. */
  revision = '4'
  entries: Json[] = []
  readonly #operatorId: string

  constructor(ids: { make(prefix: 'opr'): string }) {
    this.#operatorId = ids.make('opr')
  }

  /** Returns null for a route that is not one of these. */
  route(route: string, { headers, body }: Recorded): Reply | null {
    const [, method, name] = /^(\w+) \{base\}\/configuration(?:\/(\w+))?$/.exec(route) ?? []
    if (method === undefined) return null
    if (name === undefined) return ok({ version: 1, ...this.#list() })
    if (name === 'history') return ok({ version: 1, ...this.#history() })
    return ok(this.#change(name, String(headers['idempotency-key']), JSON.parse(body)))
  }

  #list() {
    const { revision, entries } = this
    return { revision, entries }
  }

  #history() {
    const { revision } = this
    const set = { ...this.#details('API_KEY'), revision, kind: 'secret', action: 'set' }
    return { entries: revision === '0' ? [] : [set], next: '4' }
  }

  #change(name: string, operationId: string, body: { [key: string]: string }): Json {
    const { kind, expectedRevision } = body
    const action = kind === undefined ? 'delete' : 'set'
    const revision = String(BigInt(expectedRevision!) + 1n)
    const operation = {
      version: 1,
      operationId,
      kind: `configuration.${action}`,
      outcome: 'applied',
      replayed: false,
      revision,
      createdAtMicros: MICROS,
    }
    const change = { ...this.#details(name), revision, kind: kind ?? 'secret', action }
    return { version: 1, change, operation }
  }

  #details(name: string) {
    return { name, operatorId: this.#operatorId, changedAtMicros: MICROS }
  }
}

function ok(body: Json): Reply {
  return { status: 200, body }
}
