/** `fetch` of Actions: each request with the hosts of its Action, and what to say of a failure. */
import type { FetchRequest } from '../../runner/operations.ts'
import type { AddressRange } from '../../system/address-ranges.ts'
import { FetchFailure, type Network } from '../../system/guarded-fetch.ts'
import { OutboundFetch, type OutboundResponse } from '../../system/outbound-fetch.ts'
import { OperationError } from '../invocations/operation-error.ts'
import { REQUESTS_BYTES_MAX, REQUESTS_IN_FLIGHT_MAX, RESPONSE_BYTES_MAX } from '../limits.ts'
import type { RunnerPool } from '../runners/runner-pool.ts'
import { Slots } from './slots.ts'

export interface RequestsOptions {
  /** Networks that are not public and may be called all the same. */
  readonly allowedNetworks: readonly AddressRange[]
  /** What tests replace. */
  readonly network?: Network | undefined
}

export interface RequestTerms {
  readonly hosts: readonly string[]
  /** Those of the Action that asks. */
  readonly turns: Slots
  readonly signal: AbortSignal
}

export class Requests {
  readonly #outbound: OutboundFetch
  readonly #runners: Pick<RunnerPool, 'actionBacklogBytes'>
  readonly #slots = new Slots(REQUESTS_IN_FLIGHT_MAX)
  /** Bytes of requests that are not answered, and of what came of their responses. */
  #held = 0

  constructor(options: RequestsOptions, runners: Pick<RunnerPool, 'actionBacklogBytes'>) {
    this.#outbound = new OutboundFetch({ ...options, responseBytesMax: RESPONSE_BYTES_MAX })
    this.#runners = runners
  }

  /** Answers Stored JSON of a FetchReply. Throws a Refusal. */
  async perform(request: FetchRequest, { hosts, turns, signal }: RequestTerms): Promise<string> {
    let held = 0
    const hold = (bytes: number) => {
      // An answer counts until its runner took it: one that asks and does not read gets no more.
      const all = this.#held + this.#runners.actionBacklogBytes() + bytes
      if (all > REQUESTS_BYTES_MAX) throw new FetchFailure('busy')
      this.#held += bytes
      held += bytes
    }
    const send = () => {
      const body = request.body === null ? null : Uint8Array.fromBase64(request.body)
      return this.#outbound.fetch({ ...request, body, hosts, signal, hold })
    }
    try {
      hold(charactersOf(request))
      return replyText(await turns.use(signal, () => this.#slots.use(signal, send)))
    } catch (error) {
      if (!(error instanceof FetchFailure)) throw error
      throw new OperationError('TypeError', `fetch: ${explain(error, request.url)}`)
    } finally {
      this.#held -= held
    }
  }
}

export function charactersOf({ url, headers, body }: FetchRequest): number {
  const ofHeaders = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  return url.length + ofHeaders + (body?.length ?? 0)
}

function replyText({ body, ...head }: OutboundResponse): string {
  const bytes = { $b: Buffer.from(body.buffer, body.byteOffset, body.length).toString('base64url') }
  return JSON.stringify({ ...head, body: bytes })
}

/** For the author of the Action, who wrote the URL. */
function explain({ reason, cause }: FetchFailure, text: string): string {
  const host = URL.canParse(text) ? new URL(text).host.slice(0, 260) : 'it'
  const variable = 'SERVICE_ACTION_ALLOWED_NETWORKS'
  switch (reason) {
    case 'url':
      return 'the URL must be https://host/path, without a user name'
    case 'origin':
      return `"${host}", or where it redirects to, is not in uses.network of this Action: add it`
    case 'scheme':
      return `http is for networks of ${variable}, which the operator sets: use https`
    case 'address':
      return `"${host}" has an address that is not public: the operator must list it in ${variable}`
    case 'name':
      return `"${host}" has no address`
    case 'redirect':
      return 'a redirect that is not followed: too many, another scheme, or redirect: "error"'
    case 'size':
      return `the response has more than ${RESPONSE_BYTES_MAX} bytes`
    case 'headers':
      return 'a header is malformed, or there are more than 100 headers or 32 KiB of them'
    case 'encoding':
      return 'the response is compressed in a way that cannot be undone'
    case 'time':
      return 'it was aborted'
    case 'busy':
      return `requests of all Actions hold over ${REQUESTS_BYTES_MAX} bytes: try it later`
    case 'connection':
      return `"${host}" cannot be reached, or breaks off${codeOf(cause)}`
  }
}

/** Such as ECONNREFUSED. */
function codeOf(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' ? ` (${code})` : ''
}
