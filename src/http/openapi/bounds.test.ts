/**
 * Goal: the document accepts exactly the requests that the server accepts. Method: values around
 * each bound are checked against the schemas of the document and sent to both origins in process.
 * The server rejects a request as invalid exactly where the document does.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Sample } from '../../../testing/openapi/arbitrary-requests.ts'
import { Contract, type DocumentedOperation } from '../../../testing/openapi/contract.ts'
import { type Origins, openOrigins } from '../../../testing/openapi/origins.ts'
import { OPERATION_ID_HEADER } from '../../wire/idempotency-records.ts'
import { publishedDocument } from './published.ts'

const contract = new Contract(publishedDocument())
const INVALID = ['PLATFORM_REQUEST_INVALID', 'PRODUCT_INVALID', 'REQUEST_INVALID']

let origins: Origins

beforeAll(async () => {
  origins = await openOrigins()
})
afterAll(() => origins.close())

const operationOf = (name: string): DocumentedOperation => {
  return contract.operations.find((each) => each.name === name)!
}
const system = () => origins.gateway.harness.system
const now = () => String(system().nowMicros())

interface Given {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: Readonly<Record<string, unknown>>
}

/** Returns the verdicts of the document and of the server on one request. */
async function verdicts(name: string, { params = {}, query = {}, body }: Given) {
  const operation = operationOf(name)
  const { projectId, environmentId } = origins.product.root.descriptor
  const needsId = operation.parameters.some(
    ({ name }) => name.toLowerCase() === OPERATION_ID_HEADER,
  )
  const sample: Sample = {
    params: { projectId, environmentId, ...params },
    query: Object.entries(query),
    headers: needsId ? { [OPERATION_ID_HEADER]: system().ids.make('opn') } : {},
    body: body ?? null,
  }
  const parameters = operation.parameters.filter((each) => each.in === 'query')
  const problems = [
    ...(body === undefined ? [] : [contract.problem(operation.body!.schema!, body)]),
    ...parameters
      .filter((each) => query[each.name] !== undefined)
      .map((each) => contract.problem(each.schema, query[each.name])),
  ]
  const { status, code } = await contract.check(operation, await origins.send(operation, sample))
  return {
    document: problems.every((problem) => problem === null),
    server: !INVALID.includes(code ?? ''),
    answer: `${status} ${code}`,
  }
}

type Row = readonly [value: unknown, isTaken: boolean]

/** Expects the verdict of each row from the document and from the server. */
async function expectAgreement(name: string, rows: readonly Row[], given: (value: never) => Given) {
  for (const [value, isTaken] of rows) {
    const { document, server, answer } = await verdicts(name, given(value as never))
    const shown = `${name}: ${JSON.stringify(value).slice(0, 80)} (${answer})`
    expect([shown, document, server]).toEqual([shown, isTaken, isTaken])
  }
}

const RELEASE = 'rel_00000000000000000000000000'
const TARGETS: readonly Row[] = [
  ['channel:production', true],
  ['channel:other', true],
  [`channel:${'a'.repeat(63)}`, true],
  [`channel:${'a'.repeat(64)}`, false],
  ['workspace:default', true],
  [`workspace:${'a'.repeat(63)}`, true],
  [`workspace:${'a'.repeat(64)}`, false],
  ['environment:default', true],
  ['environment:other', false],
  [`release:${RELEASE}`, true],
  [`release:${RELEASE}0`, false],
  [`release:${RELEASE.slice(0, -1)}A`, true],
  [`release:${RELEASE.slice(0, -1)}a`, false],
  [`release:${RELEASE.replace('_0', '_8')}`, false],
  ['release:latest', false],
  ['production', false],
  ['', false],
  ['channel:', false],
  ['channel:Production', false],
  ['channel:-a', false],
  ['channel:a\n', false],
  [' channel:production', false],
  ['channel:production,channel:other', false],
  [`x${'channel:production'.repeat(10)}`, false],
]
const NAMES: readonly Row[] = [
  ['echo.query', true],
  ['a/b-c/d_e.f$', true],
  [`${'a'.repeat(510)}.b`, true],
  [`${'a'.repeat(511)}.b`, false],
  ['', false],
  ['query', false],
  ['.query', false],
  ['echo.', false],
  ['echo.1', false],
  ['a//b.c', false],
  ['/a.b', false],
  ['a.b.c', false],
  ['echo.query ', false],
  ['echo.query\n', false],
  ['écho.query', false],
]
const EMPTY = { type: 'object', value: [] }

describe.each(['query', 'mutation', 'action'])('a call: %s', (name) => {
  const envelope = (): Record<string, unknown> => ({
    version: 1,
    target: 'channel:production',
    function: `echo.${name}`,
    arguments: EMPTY,
    ...(name === 'mutation' && { operationId: system().ids.make('opn') }),
  })

  test('calls accept the targets of the document', { tags: ['slow'] }, () =>
    expectAgreement(name, TARGETS, (target: string) => ({ body: { ...envelope(), target } })),
  )

  test('calls accept the Function names of the document', () =>
    expectAgreement(name, NAMES, (named: string) => ({
      body: { ...envelope(), function: named },
    })))
})

test('the catalog accepts the targets of the document', { tags: ['slow'] }, () =>
  expectAgreement('listFunctions', TARGETS, (target: string) => ({ query: { target } })),
)

test('the audit accepts the cursors of the document', async () => {
  const first = await origins.send(operationOf('listAuditRecords'), {
    params: {},
    query: [['limit', '1']],
    headers: {},
    body: null,
  })
  const { next } = (await first.json()) as { readonly next: string }
  const rows: readonly Row[] = [
    [next, true],
    ['', false],
    [next.slice(1), false],
    [`${next}A`, false],
    [`${next.slice(0, -1)}B`, false],
    [`${next.slice(0, -1)}=`, false],
    ['aud_00000000000000000000000000', false],
  ]
  await expectAgreement('listAuditRecords', rows, (after: string) => ({ query: { after } }))
})

test('the list of sessions accepts the cursors of the document', async () => {
  const rows: readonly Row[] = [
    ['ops_00000000000000000000000000', true],
    ['ops_0000000000000000000000000', false],
    ['opr_00000000000000000000000000', false],
    ['', false],
  ]
  await expectAgreement('listSessions', rows, (after: string) => ({ query: { after } }))
})

const SCOPES: readonly Row[] = [
  [['query'], true],
  [['action', 'mutation', 'query', 'realtime', 'workspace'], true],
  [[], false],
  [['query', 'query'], false],
  [['admin'], false],
  [['query', 'query', 'query', 'query', 'query', 'query'], false],
]

describe('an Application Client', () => {
  const client = (kind: string) => (maximumScopes: unknown) => ({
    body: {
      clientId: system().ids.make('app'),
      name: 'x',
      kind,
      maximumScopes,
      createdAtMicros: now(),
    },
  })

  test.each(['public', 'confidential'])(
    'an Application Client of the kind %s accepts the scopes of the document',
    (kind) => expectAgreement('createApplicationClient', SCOPES, client(kind)),
  )

  test('an Application Client of the kind development accepts only the scope workspace', () => {
    const rows: readonly Row[] = [
      [['workspace'], true],
      [['query'], false],
      [['query', 'workspace'], false],
      [[], false],
    ]
    return expectAgreement('createApplicationClient', rows, client('development'))
  })

  test('credentials accept the scopes of the document', async () => {
    const all = client('public')(['action', 'mutation', 'query', 'realtime', 'workspace'])
    await verdicts('createApplicationClient', all)
    const { clientId } = all.body
    await expectAgreement('createCredential', SCOPES, (scopes: unknown) => ({
      params: { clientId },
      body: {
        credentialId: system().ids.make('crd'),
        name: 'x',
        scopes,
        createdAtMicros: now(),
      },
    }))
  })
})

describe('a serving policy', () => {
  const share = (count: number, weight: number) =>
    Array.from({ length: count }, (_, i) => {
      return { releaseId: RELEASE.slice(0, -2) + String(i).padStart(2, '0'), weight }
    })
  const policy = (mode: string) => (releases: unknown) => ({
    body: { expectedRevision: 0, mode, releases, changedAtMicros: now() },
  })

  test('a weighted policy accepts the Releases of the document', () => {
    const rows: readonly Row[] = [
      [share(1, 10_000), true],
      [share(16, 625), true],
      [[], false],
      [share(17, 588), false],
      [share(1, 0), false],
      [share(1, 10_001), false],
      [[...share(1, 5_000), ...share(1, 5_000)], false],
    ]
    return expectAgreement('setServingPolicy', rows, policy('weighted'))
  })

  test('an atomic policy accepts only one Release with all of the weight', () => {
    const rows: readonly Row[] = [
      [share(1, 10_000), true],
      [share(1, 9_999), false],
      [share(2, 5_000), false],
      [[], false],
    ]
    return expectAgreement('setServingPolicy', rows, policy('atomic'))
  })
})

describe('the configuration', () => {
  const entry = (kind: string) => (value: unknown) => ({
    params: { name: kind === 'secret' ? 'A_SECRET' : 'A_VARIABLE' },
    body: { expectedRevision: 0, kind, value, changedAtMicros: now() },
  })
  const rows = (isEmptyTaken: boolean): readonly Row[] => [
    ['', isEmptyTaken],
    ['x', true],
    ['x'.repeat(32_768), true],
    ['x'.repeat(32_769), false],
    [null, false],
  ]

  test('the configuration accepts the variables of the document', () =>
    expectAgreement('setConfiguration', rows(true), entry('variable')))

  test('the configuration accepts the secrets of the document, and no empty one', () =>
    expectAgreement('setConfiguration', rows(false), entry('secret')))
})
