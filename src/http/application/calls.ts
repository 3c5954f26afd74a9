/** Calls of Functions and their bodies, which are parsed in turn and freed before a call ends. */
import type { CancellationToken } from '../../engine/calls/outcomes.ts'
import type { TableCode } from '../../errors/codes.ts'
import type { CompressedForms } from '../../system/compression.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { AuthMode } from '../../value/identities.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import { readBody, requireJson } from '../bodies.ts'
import { APPLICATION_CODES } from '../errors.ts'
import type { AnswerText } from '../transfers/answers.ts'
import { resolveAffinity } from './callers.ts'
import type { AffinitySource, Gateway } from './gateway.ts'
import type { ApplicationCaller, Incoming } from './incoming.ts'

/**
 * Bytes of a public request envelope (contract/application.md, Limits).
 * @limit Requests: the body of a call
 */
export const ENVELOPE_BYTES_MAX = 2 * 1024 * 1024
const NO_BYTES = new Uint8Array(0)

/** Failure of a call that ran, when the memory for unsent responses is exhausted. */
export interface Unsent {
  readonly code: TableCode
  readonly retryable: boolean
}

/** Response of a successful call. */
export interface CallResponse {
  /** Absent where the route decides it. */
  readonly unsent?: Unsent
  readonly releaseId: string
  readonly invocationId: string
  /** Text in parts, since a result may be long. The middle one is the result. */
  readonly body: AnswerText
  /**
   * Present if the response may be compressed, with the compressed forms of the result that are
   * kept or null. A response that may carry a secret, a key or a grant has none: the length of a
   * compressed text tells who can add to the text what else is in it.
   */
  readonly compressible?: { readonly forms: CompressedForms | null }
}

/** An authenticated call with its body. It is cancelled when the client disconnects. */
export class Call implements CancellationToken, AffinitySource {
  readonly gateway: Gateway
  readonly incoming: Incoming
  readonly caller: ApplicationCaller
  /** The envelope, until it is parsed. */
  bytes: Uint8Array
  /** Operation ID of a Mutation, once the envelope was read. */
  operationId: string | null = null
  /** The Function, once it was found. */
  definition: FunctionManifest | null = null

  constructor(gateway: Gateway, incoming: Incoming, caller: ApplicationCaller, bytes: Uint8Array) {
    this.gateway = gateway
    this.incoming = incoming
    this.caller = caller
    this.bytes = bytes
  }

  /** Auth mode of the Function, once the Function was found. */
  get mode(): AuthMode | null {
    return this.definition?.auth ?? null
  }

  /** Returns whether the client disconnected. Reading creates the signal, so few calls do. */
  get aborted(): boolean {
    return this.incoming.request.signal.aborted
  }

  /**
   * Returns the affinity of the caller. Without a caller identity it is the Operation ID, so a
   * repeat reaches the Release of its original.
   */
  affinity(): string | Promise<string> {
    const { gateway, incoming, caller, operationId } = this
    return resolveAffinity(gateway, incoming, caller, operationId ?? incoming.requestId)
  }
}

/** Reads the body of a call. Throws MEDIA_TYPE_UNSUPPORTED, LIMIT_EXCEEDED and BUSY. */
export function readEnvelope({ transfers }: Gateway, incoming: Incoming): Promise<Uint8Array> {
  const { request } = incoming
  requireJson(request, APPLICATION_CODES)
  return readBody(request, ENVELOPE_BYTES_MAX, APPLICATION_CODES, transfers, incoming)
}

/** Length from which parsing an envelope takes milliseconds, and so blocks other requests. */
const LONG_ENVELOPE_BYTES = 64 * 1024

/** Parses the envelope and invokes its Function. Long envelopes wait for their turn. */
export function invokeInTurn<T>(
  call: Call,
  invoke: (call: Call) => MaybePromise<T>,
): MaybePromise<T> {
  if (call.incoming.bodyMemory === null) return invoke(call)
  if (call.bytes.length <= LONG_ENVELOPE_BYTES) return parseAndInvoke(call, invoke)
  const { transfers } = call.gateway
  return transfers.parseInTurn(call.caller.credentialId, call, () => parseAndInvoke(call, invoke))
}

/** Parses the envelope and frees the body immediately, not when the Function ends. */
function parseAndInvoke<T>(call: Call, invoke: (call: Call) => MaybePromise<T>): MaybePromise<T> {
  try {
    return invoke(call)
  } finally {
    call.bytes = NO_BYTES
    call.incoming.bodyMemory?.release()
  }
}
