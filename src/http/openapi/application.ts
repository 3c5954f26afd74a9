/** OpenAPI operations of the application origin. */
import { text } from '../../wire/fields.ts'
import { AFFINITY, AFFINITY_HEADER } from '../application/callers.ts'
import { ENVELOPE_BYTES_MAX } from '../application/invoke.ts'
import type { Invocation, Probe, RealtimeRoute } from '../application/routes.ts'
import { JSON_MEDIA_TYPE } from '../management/route.ts'
import type { Operation, Reply } from './operations.ts'

const COMMON = {
  origin: 'application',
  capability: null,
  query: null,
  cache: 'no-store',
} as const
const HEADERS = ['Cache-Control', 'X-Content-Type-Options', 'X-Service-Request-Id'] as const
const Affinity = text(
  AFFINITY,
  'calls with one value get one Release; only weighted policies use it',
)

export function invocationOperation(route: Invocation): Operation {
  const { method, path, name, summary, body, errors } = route
  return {
    ...COMMON,
    ...{ method, path, name, summary, errors },
    authorities: [['applicationKey'], ['applicationKey', 'functionalToken']],
    headers: [{ name: AFFINITY_HEADER, schema: Affinity, required: false }],
    body: { mediaType: JSON_MEDIA_TYPE, schema: body, bytesMax: ENVELOPE_BYTES_MAX },
    replies: repliesOf(route),
    replyHeaders: [...HEADERS, 'X-Service-Invocation-Id', 'X-Service-Release-Id'],
    declaredErrors: true,
  }
}

export function probeOperation(route: Probe): Operation {
  const { method, path, name, summary } = route
  return {
    ...COMMON,
    ...{ method, path, name, summary },
    authorities: [],
    headers: [],
    body: null,
    replies: repliesOf(route),
    replyHeaders: HEADERS,
    errors: [],
    declaredErrors: false,
  }
}

/** The upgrade alone: OpenAPI has no form for the messages of a WebSocket. */
export function realtimeOperation(route: RealtimeRoute): Operation {
  const { method, path, name, summary, errors } = route
  return {
    ...COMMON,
    ...{ method, path, name, summary, errors },
    authorities: [],
    headers: [],
    body: null,
    replies: repliesOf(route),
    replyHeaders: [],
    declaredErrors: false,
  }
}

function repliesOf({ replies }: Invocation | Probe | RealtimeRoute): Reply[] {
  return Object.entries(replies).map(([status, schema]) => {
    return { status: Number(status), schema, mediaTypes: [JSON_MEDIA_TYPE] }
  })
}
