/**
 * Goal: the record of a rejected request names the rule that it broke, and contains no value that
 * the caller sent. Method: each request breaks one rule, with a canary wherever a caller can insert
 * text.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  CANARY,
  entries,
  type RejectionBench,
  rejectionBench,
  type Sent,
  text,
} from '../../../testing/rejections.ts'

const PEER = '198.51.100.7'
let bench: RejectionBench

interface Row {
  readonly title: string
  readonly sent: Sent | (() => Promise<Sent>)
  readonly code: string
  readonly detail: string | RegExp
  /** The most specific subject of the record, which also names those before it except the peer. */
  readonly names: 'peer' | 'credential' | 'release' | 'function'
}

const PLAIN = '/v1/functions/a.one'
/** A plain call with these headers. */
const plain = (body: string, headers: Readonly<Record<string, string>> = {}): Sent => ({
  path: PLAIN,
  body,
  headers: { 'x-service-target': 'channel:production', ...headers },
})

const UNREAD: readonly Omit<Row, 'names'>[] = [
  {
    title: 'no key',
    sent: { key: null },
    code: 'APPLICATION_KEY_REQUIRED',
    detail: 'An Application Key is required',
  },
  {
    title: 'a text without the form of an Application Key',
    sent: { key: CANARY },
    code: 'APPLICATION_KEY_INVALID',
    detail: 'the key does not have the form of an Application Key',
  },
  {
    title: 'an unknown key',
    sent: { key: `rk_sec_v1_${'A'.repeat(43)}` },
    code: 'APPLICATION_KEY_INVALID',
    detail: 'no credential has this key',
  },
  {
    title: 'an origin that is not allowed',
    sent: { headers: { origin: 'https://other.test:8443' } },
    code: 'ORIGIN_DENIED',
    detail: 'the origin https://other.test:8443 is not listed in SERVICE_PRODUCT_ALLOWED_ORIGINS',
  },
  {
    title: 'the origin of a sandboxed page',
    sent: { headers: { origin: 'null' } },
    code: 'ORIGIN_DENIED',
    detail: 'the origin null is not listed in SERVICE_PRODUCT_ALLOWED_ORIGINS',
  },
  {
    title: 'a secret as its origin',
    sent: { headers: { origin: `https://${CANARY}` } },
    code: 'ORIGIN_DENIED',
    detail: 'the origin is not listed in SERVICE_PRODUCT_ALLOWED_ORIGINS',
  },
  {
    title: 'a preflight of an origin that is not allowed',
    sent: { method: 'OPTIONS', headers: { origin: 'https://other.test' } },
    code: 'ORIGIN_DENIED',
    detail: 'the origin https://other.test is not listed in SERVICE_PRODUCT_ALLOWED_ORIGINS',
  },
  {
    title: 'a parameter in its URL',
    sent: { path: `/v1/query?x=${CANARY}` },
    code: 'REQUEST_INVALID',
    detail: 'query parameters are not accepted',
  },
  {
    title: 'an unknown path',
    sent: { path: `/v1/${CANARY}` },
    code: 'ROUTE_NOT_FOUND',
    detail: /route/,
  },
  {
    title: 'another method',
    sent: { method: 'PUT' },
    code: 'METHOD_NOT_ALLOWED',
    detail: /method/,
  },
]

const UNRESOLVED: readonly Omit<Row, 'names'>[] = [
  {
    title: 'another media type',
    sent: { headers: { 'content-type': CANARY } },
    code: 'MEDIA_TYPE_UNSUPPORTED',
    detail: 'content-type: application/json',
  },
  {
    title: 'a compressed body',
    sent: { headers: { 'content-encoding': 'gzip' } },
    code: 'MEDIA_TYPE_UNSUPPORTED',
    detail: 'content-encoding: identity',
  },
  {
    title: 'a body over the bound',
    sent: { body: CANARY.repeat(60_000) },
    code: 'LIMIT_EXCEEDED',
    detail: 'body over 2097152 bytes',
  },
  {
    title: 'a body that is not JSON',
    sent: { body: `{"${CANARY}` },
    code: 'REQUEST_INVALID',
    detail: /^\$ at character \d+: /,
  },
  {
    title: 'a body that is not an object',
    sent: { body: '[]' },
    code: 'REQUEST_INVALID',
    detail: '$: an object',
  },
  {
    title: 'an unknown field',
    sent: { more: { [CANARY]: CANARY } },
    code: 'REQUEST_INVALID',
    detail: '$: no unknown field',
  },
  {
    title: 'another version',
    sent: { more: { version: 2 } },
    code: 'REQUEST_INVALID',
    detail: 'version: 1',
  },
  {
    title: 'a malformed operation ID',
    sent: { path: '/v1/mutation', operationId: CANARY },
    code: 'REQUEST_INVALID',
    detail: /^operationId: /,
  },
  {
    title: 'unsorted keys',
    sent: { arguments: entries(['b', text()], ['a', text()]) },
    code: 'REQUEST_INVALID',
    detail: 'arguments: keys strictly sorted by UTF-8 bytes',
  },
  {
    title: 'the key of the prototype',
    sent: { arguments: entries(['__proto__', text()]) },
    code: 'REQUEST_INVALID',
    detail: 'arguments: no __proto__ key',
  },
  {
    title: 'a value of an unknown type',
    sent: { arguments: entries([CANARY, { type: CANARY }]) },
    code: 'REQUEST_INVALID',
    detail: 'arguments.*: exactly type and value',
  },
  {
    title: 'a malformed target',
    sent: { target: CANARY },
    code: 'REQUEST_INVALID',
    detail: 'not a target',
  },
  {
    title: 'an unknown Channel',
    sent: { target: 'channel:beta' },
    code: 'TARGET_NOT_FOUND',
    detail: 'no Release serves channel:beta',
  },
]

const UNFOUND: readonly Omit<Row, 'names'>[] = [
  {
    title: 'an unknown Function',
    sent: { function: 'a.two' },
    code: 'FUNCTION_NOT_FOUND',
    detail: 'the Release has no Function a.two',
  },
  {
    title: 'an invalid Function name',
    sent: { function: CANARY },
    code: 'REQUEST_INVALID',
    detail: 'function: not a valid Function name',
  },
  {
    title: 'an internal Function',
    sent: { function: 'a.hidden' },
    code: 'FUNCTION_NOT_FOUND',
    detail: 'a.hidden is internal',
  },
  {
    title: 'a Function of another kind',
    sent: { function: 'b.insert' },
    code: 'FUNCTION_NOT_FOUND',
    detail: 'b.insert is not a query: it is a mutation',
  },
]

const FOUND: readonly Omit<Row, 'names'>[] = [
  {
    title: 'a Function for other kinds of clients',
    sent: { function: 'a.public' },
    code: 'AUTH_POLICY_DENIED',
    detail: 'a confidential key may not call this Function',
  },
  {
    title: 'no token where one is required',
    sent: { function: 'a.user' },
    code: 'FUNCTIONAL_TOKEN_REQUIRED',
    detail: 'the Function requires a user identity',
  },
  {
    title: 'a malformed authorization header',
    sent: { function: 'a.user', headers: { authorization: CANARY } },
    code: 'FUNCTIONAL_TOKEN_INVALID',
    detail: /not a bearer token/,
  },
  {
    title: 'a token of another audience',
    sent: async () => ({ function: 'a.user', headers: await bench.bearer({ aud: CANARY }) }),
    code: 'FUNCTIONAL_TOKEN_INVALID',
    detail: /\baud\b/,
  },
  {
    title: 'an expired token',
    sent: async () => ({ function: 'a.user', headers: await bench.bearer({ iat: 1, exp: 2 }) }),
    code: 'FUNCTIONAL_TOKEN_INVALID',
    detail: /\bexp/,
  },
  {
    title: 'an undeclared argument',
    sent: { arguments: entries([CANARY, text()]) },
    code: 'ARGUMENTS_INVALID',
    detail: 'arguments.*: no undeclared field',
  },
  {
    title: 'an argument of another type',
    sent: { arguments: entries(['n', text()]) },
    code: 'ARGUMENTS_INVALID',
    detail: 'arguments.n: an int64 (a bigint such as 5n)',
  },
  {
    title: 'a value of another type under a key that is data',
    sent: { arguments: entries(['texts', entries(['me@example.com', { type: 'null' }])]) },
    code: 'ARGUMENTS_INVALID',
    detail: 'arguments.texts.*: a string',
  },
  {
    title: 'a result over the bound',
    sent: { function: 'a.large' },
    code: 'LIMIT_EXCEEDED',
    detail: 'result: at most 8 MiB',
  },
  {
    title: 'a duplicate key of a unique index',
    sent: { path: '/v1/mutation', function: 'b.insert' },
    code: 'UNIQUE_VIOLATION',
    detail: 'names: another document has the same name (index byName)',
  },
]

const PLAIN_UNRESOLVED: readonly Omit<Row, 'names'>[] = [
  {
    title: 'a plain body that is not JSON',
    sent: plain(`{"${CANARY}`),
    code: 'REQUEST_INVALID',
    detail: /^\$ at character \d+: /,
  },
  {
    title: 'a malformed target of a plain call',
    sent: plain('{}', { 'x-service-target': CANARY }),
    code: 'REQUEST_INVALID',
    detail: 'not a target',
  },
  {
    title: 'an unknown form of integers',
    sent: plain('{}', { 'x-service-integers': CANARY }),
    code: 'REQUEST_INVALID',
    detail: 'x-service-integers: string',
  },
  {
    title: 'a malformed operation ID of a plain call',
    sent: plain('{}', { 'idempotency-key': CANARY }),
    code: 'REQUEST_INVALID',
    detail: 'idempotency-key: a canonical opn_ ID',
  },
  {
    title: 'another parameter than the arguments in its URL',
    sent: { method: 'GET', path: `${PLAIN}?${CANARY}=${CANARY}` },
    code: 'REQUEST_INVALID',
    detail: 'the query parameter arguments, once',
  },
  {
    title: 'arguments in its URL that are not JSON',
    sent: { method: 'GET', path: `${PLAIN}?arguments=${CANARY}` },
    code: 'REQUEST_INVALID',
    detail: /^\$ at character \d+: /,
  },
]

const PLAIN_FOUND: readonly Omit<Row, 'names'>[] = [
  {
    title: 'an undeclared argument in plain JSON',
    sent: plain(`{"${CANARY}":"${CANARY}"}`),
    code: 'ARGUMENTS_INVALID',
    detail: 'arguments.*: no undeclared field, but one of n, texts',
  },
  {
    title: 'an argument of another type in plain JSON',
    sent: plain(`{"n":"${CANARY}"}`),
    code: 'ARGUMENTS_INVALID',
    detail: 'arguments.n: an int64: an integer within 2^53, or a string of decimal digits',
  },
  {
    title: 'a plain value of another type under a key that is data',
    sent: plain('{"texts":{"me@example.com":null}}'),
    code: 'ARGUMENTS_INVALID',
    detail: 'arguments.texts.*: a string',
  },
  {
    title: 'an operation ID for a Query',
    sent: plain('{}', { 'idempotency-key': 'opn_01ARZ3NDEKTSV4RRFFQ69G5FAV' }),
    code: 'REQUEST_INVALID',
    detail: 'idempotency-key: a query has no operation ID',
  },
]

const PLAIN_ROWS: readonly Row[] = [
  ...PLAIN_UNRESOLVED.map((row) => ({ ...row, names: 'credential' as const })),
  ...PLAIN_FOUND.map((row) => ({ ...row, names: 'function' as const })),
]

const TAGGED_ROWS: readonly Row[] = [
  ...UNREAD.map((row) => ({ ...row, names: 'peer' as const })),
  ...UNRESOLVED.map((row) => ({ ...row, names: 'credential' as const })),
  ...UNFOUND.map((row) => ({ ...row, names: 'release' as const })),
  ...FOUND.map((row) => ({ ...row, names: 'function' as const })),
]

// The log bounds the records of one credential, so that each form has its own.
describe.each([
  { form: 'tagged', rows: TAGGED_ROWS },
  { form: 'plain', rows: PLAIN_ROWS },
])('records of rejected requests in the $form form', ({ rows }) => {
  beforeAll(async () => {
    bench = await rejectionBench()
    await bench.send({ path: '/v1/mutation', function: 'b.insert' })
  })
  afterAll(() => bench.close())

  test.each(rows)(
    'one record names the rule that the request broke: $title',
    async ({ sent: given, code, detail, names }) => {
      const sent = typeof given === 'function' ? await given() : given
      const { code: answered, headers, records } = await bench.send({ peer: PEER, ...sent })
      expect(answered).toBe(code)
      expect(records).toHaveLength(1)
      const record = records[0]!
      expect(record).toMatchObject({
        event: 'request.rejected',
        requestId: headers.get('x-service-request-id'),
        errorCode: code,
        detail: typeof detail === 'string' ? detail : expect.stringMatching(detail),
        message: `Rejected with ${code}: ${record.detail}.`,
      })
      const isResolved = names === 'release' || names === 'function'
      expect({
        peer: record.peer,
        clientId: record.clientId,
        credentialId: record.credentialId,
        releaseId: record.releaseId,
        function: record.function,
      }).toEqual({
        peer: undefined,
        ...(names === 'peer' ? { peer: PEER } : bench.credentialOf(bench.gateway.key)),
        releaseId: isResolved ? bench.gateway.releaseId : undefined,
        function: names === 'function' ? (sent.function ?? 'a.one') : undefined,
      })
      expect(record.invocationId).toBe(headers.get('x-service-invocation-id') ?? undefined)
      expect(bench.memory.text()).not.toContain(CANARY)
      expect(bench.memory.text()).not.toContain('me@example.com')
    },
  )
})
