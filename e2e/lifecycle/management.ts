/** The management origin as the clients of a run use it, and the states in its reads. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Application, Json } from '../application.ts'
import {
  type Attempt,
  type AuditRecord,
  CHANNELS,
  type Observation,
  type Reply,
  type Resource,
} from './changes.ts'
import { historyEntry, parseBody } from './outcomes.ts'

interface Message {
  readonly operationId?: string | null
  readonly body?: Json
  /** Aborts the request at the client; the server may still process it. */
  readonly signal?: AbortSignal | null
}

const PAGE = 1_000
const PREFIXES: readonly (readonly [string, Resource])[] = [
  ['product.serving_policy.', 'serving_policy'],
  ['product.configuration.', 'configuration'],
  ['product.environment.', 'environment'],
]

export class Management {
  readonly environmentId: string
  readonly #app: Application
  readonly #base: string

  constructor(app: Application) {
    const read = (path: string) =>
      JSON.parse(readFileSync(join(app.installation.directory, path), 'utf8'))
    const { projectId, environmentId } = read('product/service.json')
    this.#app = app
    this.environmentId = environmentId
    this.#base = `/v1/projects/${projectId}/environments/${environmentId}`
  }

  /** The access token. It expires after ten minutes; commands of the client replace it before. */
  get #token(): string {
    const path = join(this.#app.installation.directory, 'config/credentials-v1.json')
    return JSON.parse(readFileSync(path, 'utf8')).accessToken
  }

  /**
   * Sends a request to a path of the Environment. No reply if the server ended or is overloaded.
   */
  async attempt(method: string, path: string, message: Message = {}): Promise<Attempt> {
    const sent = performance.now()
    const reply = await this.#send(method, this.#base + path, message).catch(() => null)
    // An aborted request may take effect at any later time.
    const isAbandoned = reply === null && message.signal?.aborted === true
    return {
      sent,
      received: isAbandoned ? Number.POSITIVE_INFINITY : performance.now(),
      reply: reply !== null && reply.status < 500 ? reply : null,
    }
  }

  /** Returns the states that one route contains; none if the server has ended. */
  async read(resource: Resource): Promise<readonly Observation[]> {
    const { sent, received, reply } = await this.attempt('GET', ROUTES[resource])
    if (reply === null) return []
    if (reply.status !== 200) throw new Error(`${resource}: ${reply.text}`)
    return viewsOf(resource, parseBody(reply.text)).map((view) => ({ sent, received, ...view }))
  }

  /** Returns the entries of the configuration history, oldest first. */
  async configurationHistory(): Promise<readonly Json[]> {
    const path = (after: string) => `${this.#base}/configuration/history?limit=${PAGE}${after}`
    const entries = await this.#pages(path, 'entries')
    return entries.map(historyEntry).reverse()
  }

  /** Returns the audit records of the changes of each resource, oldest first. */
  async audit(): Promise<Record<Resource, AuditRecord[]>> {
    const items = await this.#pages((after) => `/v1/access/audit?limit=${PAGE}${after}`, 'items')
    const found: Record<Resource, AuditRecord[]> = {
      'channel:production': [],
      'channel:staging': [],
      serving_policy: [],
      configuration: [],
      environment: [],
    }
    for (const { operation, subject, requestId, outcome } of items.reverse()) {
      const resource = resourceOf(operation, subject)
      if (resource === null) continue
      if (outcome !== 'succeeded') throw new Error(`${operation} of ${subject} ${outcome}`)
      found[resource].push({ operation, subject, requestId })
    }
    return found
  }

  async #pages(path: (after: string) => string, name: 'items' | 'entries'): Promise<Json[]> {
    const all: Json[] = []
    for (let after = ''; ; ) {
      const { status, text } = await this.#send('GET', path(after))
      if (status !== 200) throw new Error(text)
      const page = parseBody(text)
      all.push(...page[name])
      if (page.next === null) return all
      after = `&after=${page.next}`
    }
  }

  async #send(
    method: string,
    path: string,
    { operationId = null, body, signal = null }: Message = {},
  ): Promise<Reply> {
    const response = await fetch(this.#app.server.management + path, {
      method,
      signal,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${this.#token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(operationId !== null && { 'idempotency-key': operationId }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const requestId = response.headers.get('x-service-request-id') ?? ''
    return { status: response.status, requestId, text: await response.text() }
  }
}

const ROUTES: Readonly<Record<Resource, string>> = {
  'channel:production': '/status',
  'channel:staging': '/status',
  serving_policy: '/serving-policy',
  configuration: '/configuration',
  environment: '',
}

type View = Pick<Observation, 'resource' | 'revision' | 'view'>

/** One read of the status contains every Channel. */
function viewsOf(resource: Resource, body: Json): View[] {
  switch (resource) {
    case 'serving_policy': {
      const { revision, mode, releases } = body.desired
      return [{ resource, revision: Number(revision), view: { mode, releases } }]
    }
    case 'configuration':
      return [{ resource, revision: Number(body.revision), view: body.entries }]
    case 'environment': {
      const { revision, lifecycle, configuration } = body.desired
      return [{ resource, revision: Number(revision), view: { lifecycle, configuration } }]
    }
    default:
      return CHANNELS.map((name) => channelView(name, body))
  }
}

function channelView(name: (typeof CHANNELS)[number], { channels }: Json): View {
  const found = channels.find(({ channel }: Json) => channel === name)
  const { releaseId, history, revision } = found ?? { releaseId: 'empty', history: [], revision: 0 }
  return { resource: `channel:${name}`, revision: Number(revision), view: { releaseId, history } }
}

function resourceOf(operation: string, subject: string | null): Resource | null {
  if (operation.startsWith('product.channel.')) {
    const name = CHANNELS.find((each) => subject?.startsWith(`${each}:`))
    return name === undefined ? null : `channel:${name}`
  }
  return PREFIXES.find(([prefix]) => operation.startsWith(prefix))?.[1] ?? null
}
