/** Requests of a campaign to both origins of a server. No answer is null: the server is down. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Application, type Json, object } from '../../application.ts'

export interface Reply {
  readonly status: number
  readonly body: Json
}

export interface Message {
  /** The owner's by default; null for none. */
  readonly token?: string | null
  readonly operationId?: string
  readonly body?: Json
}

/** Time limit of a request, which only a server exceeds that was killed. */
const ANSWER_MILLIS = 20_000

export class Origins {
  /** The path of the Environment. */
  readonly base: string
  /** The access token of the owner. It expires after ten minutes, and is never renewed. */
  readonly owner: string
  readonly #app: Application

  constructor(app: Application) {
    const { installation } = app
    const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
    const { projectId, environmentId } = read(join(installation.productRoot, 'service.json'))
    this.base = `/v1/projects/${projectId}/environments/${environmentId}`
    this.owner = read(join(installation.directory, 'config/credentials-v1.json')).accessToken
    this.#app = app
  }

  manage(method: string, path: string, message: Message = {}): Promise<Reply | null> {
    const { token = this.owner, operationId, body } = message
    return attempted(this.#app.server.management + path, {
      method,
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(operationId !== undefined && { 'idempotency-key': operationId }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  }

  call(kind: 'action' | 'mutation' | 'query', call: Json, key = this.#app.key) {
    const { function: name, arguments: given = {}, ...rest } = call
    const body = { version: 1, target: 'channel:production', function: name, ...rest }
    return attempted(`${this.#app.server.application}/v1/${kind}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': key },
      body: JSON.stringify({ ...body, arguments: object(given) }),
    })
  }

  transfer(path: string, init: RequestInit): Promise<Response | null> {
    const signal = AbortSignal.timeout(ANSWER_MILLIS)
    const url = this.#app.server.application + path
    return fetch(url, { ...init, signal }).catch(() => null)
  }
}

async function attempted(url: string, init: RequestInit): Promise<Reply | null> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(ANSWER_MILLIS) })
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  } catch {
    return null
  }
}
