/**
 * Calls over HTTP with the client's retry policy (contract/application.md, Client retry policy):
 * bounded retries of Queries and Mutations, none of Actions, one total deadline, bounded and
 * checked responses.
 */
import { backoffMillis, CALL_BACKOFF } from '../backoff.ts'
import { CallError, clientError, hasCode, isCallError, responseInvalid } from '../errors.ts'
import type { Platform } from '../platform.ts'
import type { FunctionKind } from '../references.ts'
import { Deadline } from './deadlines.ts'
import { type Answer, BrokenBody, readAnswer, readError, readJson } from './responses.ts'
import type { Tokens } from './tokens.ts'

export interface Origin {
  readonly platform: Platform
  /** The application address, without a slash at the end. */
  readonly url: string
  readonly applicationKey: string
  readonly tokens: Tokens
  readonly responseBytesMax: number
}

export interface Call {
  readonly kind: FunctionKind
  readonly target: string
  /** The request envelope; every attempt sends the same text. */
  readonly body: string
  readonly operationId: string | null
  readonly deadlineMillis: number
  readonly signal?: AbortSignal | undefined
}

const ATTEMPTS_MAX = 8

interface Failure {
  readonly error: CallError
  readonly mayRetry: boolean
  /** True if this attempt may have taken effect. */
  readonly isUncertain: boolean
  /** Milliseconds to wait, as the server requested. */
  readonly retryAfterMillis: number
}

/** Sends a call and repeats it as the policy allows. Throws CallError. */
export async function sendCall(origin: Origin, call: Call): Promise<Answer> {
  const deadline = new Deadline(origin.platform, call.deadlineMillis, call.signal)
  try {
    return await attemptAll(origin, call, deadline)
  } finally {
    deadline.close()
  }
}

async function attemptAll(origin: Origin, call: Call, deadline: Deadline): Promise<Answer> {
  let isUncertain = false
  /** The token that the hook returned after a rejection. Later attempts of the call use it. */
  let refreshed: string | null = null
  let failure: Failure | null = null
  for (let attempt = 1; deadline.reason === null; attempt++) {
    const token = refreshed ?? (await origin.tokens.current())
    const answer = await attemptOnce(origin, call, token, deadline)
    if ('result' in answer) return answer
    failure = answer
    isUncertain ||= failure.isUncertain
    if (refreshed === null) {
      refreshed = await refreshedToken(origin, call, { failure, token })
      if (refreshed !== null) continue
    }
    if (call.kind === 'action' || !failure.mayRetry || attempt === ATTEMPTS_MAX) break
    const millis = backoffMillis(CALL_BACKOFF, attempt, origin.platform)
    await deadline.pause(Math.max(millis, failure.retryAfterMillis))
  }
  throw finalError(call, failure?.error ?? null, deadline.reason, isUncertain)
}

interface RejectedAttempt {
  readonly failure: Failure
  readonly token: string | null
}

/**
 * Returns a refreshed token for one further attempt, or null. It is not a retry of the request,
 * since the server rejected the credential before it ran anything. An Action is never sent again.
 */
async function refreshedToken(
  origin: Origin,
  call: Call,
  { failure, token }: RejectedAttempt,
): Promise<string | null> {
  const isRejected = hasCode(failure.error, 'FUNCTIONAL_TOKEN_INVALID', 'FUNCTIONAL_TOKEN_REQUIRED')
  if (!isRejected || !origin.tokens.canRefresh) return null
  const refreshed = await origin.tokens.refresh()
  return call.kind === 'action' || refreshed === token ? null : refreshed
}

async function attemptOnce(
  { platform, url, applicationKey, responseBytesMax }: Origin,
  call: Call,
  token: string | null,
  { signal }: Deadline,
): Promise<Answer | Failure> {
  let response: Response
  let json: unknown
  try {
    response = await platform.fetch(`${url}/v1/${call.kind}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'x-service-key': applicationKey,
        ...(token !== null && { authorization: `Bearer ${token}` }),
      },
      body: call.body,
      signal,
      // A redirect would carry the credentials to another address. The server says what may be
      // cached: with `cache: 'no-store'` browsers ask for permission (CORS) before every call.
      redirect: 'error',
      credentials: 'omit',
    })
    json = await readJson(response, responseBytesMax)
  } catch (error) {
    return isCallError(error) ? invalidResponse(error) : lostConnection(error)
  }
  const error = readError(json, response)
  if (error !== null) return failureOf(error, response)
  // A proxy that cannot reach the service sends a response of its own.
  if ([502, 503, 504].includes(response.status)) return lostConnection(undefined)
  try {
    if (response.status !== 200) throw responseInvalid(`an unknown response (${response.status})`)
    return readAnswer(json, response, call)
  } catch (caught) {
    if (!isCallError(caught)) throw caught
    return invalidResponse(caught)
  }
}

function lostConnection(error: unknown): Failure {
  const cause = error instanceof BrokenBody ? error.cause : error
  const message = 'The server did not respond.'
  return {
    error: clientError('CLIENT_SERVER_UNREACHABLE', message, { retryable: true, cause }),
    mayRetry: true,
    isUncertain: true,
    retryAfterMillis: 0,
  }
}

function invalidResponse(error: CallError): Failure {
  return { error, mayRetry: false, isUncertain: true, retryAfterMillis: 0 }
}

function failureOf(error: CallError, { headers }: Response): Failure {
  const seconds = Number(headers.get('retry-after') ?? 0)
  return {
    error,
    mayRetry: error.retryable,
    isUncertain: hasCode(error, 'RESULT_UNCERTAIN', 'DEADLINE_EXCEEDED', 'INTERNAL'),
    retryAfterMillis: Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : 0,
  }
}

/** Returns whether the server sends the code only after it has looked up the operation ID. */
function isAfterLookUp({ code }: CallError): boolean {
  return code.startsWith('APP_') || ['FUNCTION_FAILED', 'UNIQUE_VIOLATION'].includes(code)
}

function finalError(
  { kind, operationId }: Call,
  last: CallError | null,
  ended: CallError | null,
  isUncertain: boolean,
): CallError {
  const error = ended ?? last!
  const outcomeKnown = kind === 'query' || !isUncertain || isAfterLookUp(error)
  const { requestId, retryable, cause } = error
  const details = { requestId, retryable, operationId, outcomeKnown, cause: cause ?? last }
  const isLost = hasCode(error, 'CLIENT_SERVER_UNREACHABLE', 'DEADLINE_EXCEEDED')
  if (!outcomeKnown && isLost && requestId === null) {
    const message = `The response was lost. The ${kind} may have taken effect.`
    return clientError('CLIENT_RESULT_UNCERTAIN', message, { ...details, retryable: false })
  }
  return new CallError(error.code, error.message, details)
}
