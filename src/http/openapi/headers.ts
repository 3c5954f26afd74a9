/** Response headers as components. Most are required in each response that references them. */
import { CONTENT_CODINGS } from '../../system/compression.ts'
import { idField } from '../../wire/fields.ts'
import { jsonSchemaOf } from '../../wire/reading/json-schema.ts'
import type { JsonSchema } from '../../wire/rules.ts'

const header = (schema: JsonSchema): object => ({ required: true, schema })

export const HEADERS = {
  Allow: header({ type: 'string' }),
  'Accept-Ranges': header({ const: 'bytes' }),
  'Cache-Control': header({ const: 'no-store' }),
  'Content-Encoding': {
    description: 'Present if the body is compressed, as Accept-Encoding permits.',
    schema: { enum: CONTENT_CODINGS },
  },
  'Content-Disposition': header({ type: 'string', pattern: '^attachment' }),
  'Content-Security-Policy': header({ const: 'sandbox' }),
  'Cross-Origin-Resource-Policy': header({ const: 'cross-origin' }),
  ETag: {
    description: 'The SHA-256 of the whole content.',
    ...header({ type: 'string', pattern: '^"[0-9a-f]{64}"$' }),
  },
  'Referrer-Policy': header({ const: 'no-referrer' }),
  'Retry-After': {
    description: 'Seconds to wait.',
    ...header({ type: 'integer', minimum: 0 }),
  },
  'Sec-WebSocket-Version': header({ const: '13' }),
  Upgrade: header({ const: 'websocket' }),
  Vary: {
    description: 'Has Accept-Encoding if another value may lead to another coding of the body.',
    schema: { type: 'string', pattern: '^(?:Accept-Encoding(?:, Origin)?|Origin)$' },
  },
  'WWW-Authenticate': header({ const: 'Bearer' }),
  'X-Content-Type-Options': header({ const: 'nosniff' }),
  'X-Service-File-Id': header(jsonSchemaOf(idField('fil'))),
  'X-Service-Invocation-Id': header(jsonSchemaOf(idField('ivc'))),
  'X-Service-Release-Id': header(jsonSchemaOf(idField('rel'))),
  'X-Service-Request-Id': header(jsonSchemaOf(idField('req'))),
  'X-Service-Version': {
    description: 'The version and the commit of the server, for authenticated operators.',
    ...header({ type: 'string', pattern: '^\\d+\\.\\d+\\.\\d+(\\+[0-9A-Za-z.-]+)?$' }),
  },
} as const

export type HeaderName = keyof typeof HEADERS

/** Headers of the responses of an operation that may be compressed. */
export const CODING_HEADERS: readonly HeaderName[] = ['Content-Encoding', 'Vary']

/** Values of headers that differ from those of the component. */
export type HeaderValues = Readonly<Partial<Record<HeaderName, JsonSchema>>>

/** Returns references to headers. `cache` is the value of Cache-Control. */
export function responseHeaders(
  names: readonly HeaderName[],
  cache: string,
  values: HeaderValues = {},
): Record<string, object> {
  const references = names.map((name) => [name, { $ref: `#/components/headers/${name}` }] as const)
  const own = Object.entries(values).map(([name, schema]) => [name, header(schema)] as const)
  const control = cache === 'no-store' ? {} : { 'Cache-Control': header({ const: cache }) }
  return { ...Object.fromEntries([...references, ...own]), ...control }
}
