/**
 * Goal: each route behaves as the document states. Method: in process, each operation of both
 * origins is called with a request drawn from its schemas, and then with every single defect that
 * the schemas rule out. Each response has the documented status, headers and body.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  invalidRequests,
  type Sample,
  type State,
  validRequest,
} from '../../../testing/openapi/arbitrary-requests.ts'
import { backupSteps } from '../../../testing/openapi/backup-steps.ts'
import { bucketSteps } from '../../../testing/openapi/bucket-steps.ts'
import { Contract, type DocumentedOperation } from '../../../testing/openapi/contract.ts'
import { dataSteps, type Step } from '../../../testing/openapi/data-steps.ts'
import {
  developed,
  developmentSteps,
  PROVENANCE,
} from '../../../testing/openapi/development-steps.ts'
import { fileSteps } from '../../../testing/openapi/file-steps.ts'
import { mountSteps } from '../../../testing/openapi/mount-steps.ts'
import {
  CRONS,
  DECLARED_FAILURES,
  FUNCTIONS,
  MIGRATIONS,
  type Origins,
  openOrigins,
  ROUTES,
  TABLES,
} from '../../../testing/openapi/origins.ts'
import { makePackage } from '../../../testing/products.ts'
import { finishWork, insertWork } from '../../engine/scheduled-work/scheduled-documents.ts'
import { encodeStored } from '../../value/stored.ts'
import type { Value } from '../../value/values.ts'
import { OPERATION_ID_HEADER } from '../../wire/idempotency-records.ts'
import { EXPECTED_HEAD_HEADER, PROVENANCE_HEADER } from '../../wire/workspace.ts'
import { publishedDocument } from './published.ts'

const DELIVERY = new Map([
  [
    'delivery',
    new Map<string, Value>([
      ['headers', new Map()],
      ['query', new Map()],
      ['body', new Uint8Array()],
    ]),
  ],
])
const SEED = Number(process.env.SVC_SEED ?? Date.now() % 2 ** 31)
const contract = new Contract(publishedDocument())
/** Operations that one request can try; connections and streams have tests of their own. */
const operations = contract.operations.filter(({ name, responses }) => {
  return !('101' in responses) && name !== 'followLogs'
})
const operationOf = (name: string): DocumentedOperation => {
  return contract.operations.find((each) => each.name === name)!
}

let origins: Origins
/** Bodies of the responses so far, by operation. */
const answered: Record<string, unknown> = {}
/** Requests that succeeded, by operation. */
const sent = new Map<string, Sample>()

beforeAll(async () => {
  process.stdout.write(`SVC_SEED=${SEED}\n`)
  origins = await openOrigins()
})
afterAll(() => origins.close())

/** Reads a text of an earlier response, whose schema was checked when it arrived. */
function from(name: string, ...path: readonly (string | number)[]): string {
  const found = path.reduce(
    (at: unknown, part) => (at as Record<string | number, unknown>)[part],
    answered[name],
  )
  expect(typeof found, `${name}.${path.join('.')}`).toBe('string')
  return found as string
}

const now = () => String(origins.gateway.harness.system.nowMicros())
const newId = (prefix: 'app' | 'crd' | 'opn') => origins.gateway.harness.system.ids.make(prefix)
const operationId = (name: string) => ({
  params: { operationId: sent.get(name)!.headers[OPERATION_ID_HEADER]! },
})
const client = () => ({ clientId: from('createApplicationClient', 'client', 'clientId') })
const credential = () => ({
  ...client(),
  credentialId: from('createCredential', 'credential', 'credentialId'),
})
const colleague = () => ({
  params: { operatorId: from('logInExternally', 'operator', 'operatorId') },
})
const observing = () => ({
  scope: { kind: 'environment', ...inEnvironment() },
  role: 'observer',
  expectedCapabilities: null,
})
const changed = (expectedRevision: number | string): State => ({
  body: { expectedRevision, changedAtMicros: now() },
})
const after = (name: string) => changed(from(name, 'desired', 'revision'))
const call = (name: string): State => ({
  body: {
    target: 'channel:production',
    function: name,
    arguments: { type: 'object', value: [] },
  },
})
const plainCall = (name: string): State => ({
  params: { function: name },
  headers: { 'x-service-target': 'channel:production' },
  body: {},
})
const entry = { name: 'API_KEY' }

/** Steps in an order in which each operation succeeds: name, status, and required state. */
const STEPS: readonly Step[] = [
  ['readLiveness', 200],
  ['readReadiness', 200],
  ['readOpenApiDocument', 200],
  ['readAuthConfig', 200],
  ['readOidcConfig', 200],
  [
    'exchangeCode',
    201,
    async () => ({ body: { code: await origins.logins.invite(), operatorName: undefined } }),
  ],
  ['refreshSession', 200, () => ({ body: { refreshToken: from('exchangeCode', 'refreshToken') } })],
  [
    'logInExternally',
    201,
    async () => ({ body: { code: await origins.logins.invite(), managedEnrollment: undefined } }),
  ],
  ['reconcileGrants', 200, () => ({ ...colleague(), body: { sourceRevision: 1 } })],
  ['listOperators', 200, () => ({ query: { after: undefined } })],
  ['listOperatorSessions', 200, () => ({ ...colleague(), query: { after: undefined } })],
  ['disableOperator', 200, () => ({ ...colleague(), body: { changedAtMicros: now() } })],
  ['enableOperator', 200, () => ({ ...colleague(), body: { changedAtMicros: now() } })],
  ['changeGrant', 200, () => ({ ...colleague(), body: observing() })],
  ['readSelf', 200],
  ['listSessions', 200],
  [
    'deriveSession',
    201,
    () => ({
      body: {
        capabilities: ['logs:read'],
        scope: { kind: 'environment', ...inEnvironment() },
        lifetimeSeconds: 60,
        purpose: 'mcp',
      },
    }),
  ],
  [
    'revokeSession',
    204,
    () => ({ params: { sessionId: from('exchangeCode', 'session', 'sessionId') } }),
  ],
  ['listResources', 200],
  [
    'issueInvitation',
    201,
    // A workload needs a configured provider, and this server has none.
    () => ({
      headers: { [OPERATION_ID_HEADER]: newId('opn') },
      body: { workload: undefined },
    }),
  ],
  ['readInvitationOperation', 200, () => operationId('issueInvitation')],
  [
    'revokeInvitation',
    204,
    () => ({ params: { invitationId: from('issueInvitation', 'invitationId') } }),
  ],
  ['listAuditRecords', 200, () => ({ query: { after: undefined } })],
  ['createEnvironment', 201, () => developed({ body: { changedAtMicros: now() } })],
  ['readEnvironmentOperation', 200, () => operationId('createEnvironment')],
  ['updateEnvironment', 200, () => developed(after('createEnvironment'))],
  ['readEnvironment', 200],
  ['readStatus', 200],
  [
    'publishWorkspace',
    201,
    () => ({
      headers: {
        [EXPECTED_HEAD_HEADER]: from('readStatus', 'workspaces', 0, 'revisionId'),
        [PROVENANCE_HEADER]: PROVENANCE,
      },
      body: makePackage({ ...WORKSPACE, source: 'second' }),
    }),
  ],
  [
    'checkWorkspace',
    200,
    () => ({
      query: { against: undefined },
      body: makePackage({ ...WORKSPACE, source: 'third' }),
    }),
  ],
  [
    'validateRelease',
    200,
    () => ({
      params: { releaseId: from('publishWorkspace', 'releaseId') },
      body: { against: 'production' },
    }),
  ],
  [
    'promoteRelease',
    200,
    () => ({
      params: { channel: 'production' },
      body: {
        releaseId: from('publishWorkspace', 'releaseId'),
        expectedReleaseId: origins.gateway.releaseId,
      },
    }),
  ],
  [
    'rollbackChannel',
    200,
    () => ({
      params: { channel: 'production' },
      body: {
        targetReleaseId: origins.gateway.releaseId,
        expectedReleaseId: from('publishWorkspace', 'releaseId'),
      },
    }),
  ],
  [
    'setServingPolicy',
    200,
    () => ({
      body: {
        ...(changed(0).body as object),
        mode: 'atomic',
        releases: [{ releaseId: origins.gateway.releaseId, weight: 10_000 }],
      },
    }),
  ],
  ['readServingPolicyOperation', 200, () => operationId('setServingPolicy')],
  ['readServingPolicy', 200],
  ['readSchemaCompatibility', 200],
  ['listFunctions', 200, () => ({ query: { target: 'channel:production' } })],
  ['listTables', 200, () => ({ query: { target: 'channel:production' } })],
  ...dataSteps({ now, newId, from }),
  ...bucketSteps({ now, newId, from }),
  ...mountSteps({ now, newId, from }, failDelivery),
  ...developmentSteps(
    { from },
    { functions: FUNCTIONS, tables: TABLES, crons: CRONS, migrations: MIGRATIONS, http: ROUTES },
  ),
  [
    'setConfiguration',
    200,
    () => ({ params: entry, body: { ...(changed(0).body as object), value: 'a value' } }),
  ],
  ['listConfiguration', 200],
  [
    'deleteConfiguration',
    200,
    () => ({ params: entry, ...changed(from('setConfiguration', 'change', 'revision')) }),
  ],
  ['listConfigurationChanges', 200, () => ({ query: { after: undefined } })],
  [
    'createApplicationClient',
    201,
    () => ({ body: { kind: 'public', maximumScopes: ['query'], createdAtMicros: now() } }),
  ],
  ['listApplicationClients', 200],
  [
    'createCredential',
    201,
    () => ({ params: client(), body: { scopes: ['query'], createdAtMicros: now() } }),
  ],
  ['listCredentials', 200, () => ({ params: client() })],
  ['revealKey', 200, () => ({ params: credential() })],
  [
    'rotateCredential',
    201,
    () => ({
      params: credential(),
      body: { credentialId: newId('crd'), scopes: ['query'], createdAtMicros: now() },
    }),
  ],
  ['revokeCredential', 200, () => ({ params: credential() })],
  ['deleteCredential', 204, () => ({ params: credential() })],
  ['listScheduled', 200],
  ['listCrons', 200, () => ({ query: { target: undefined } })],
  [
    'activateCron',
    200,
    () => ({
      ...digest(),
      body: { expectedRevision: '0', activation: 'disabled', changedAtMicros: now() },
    }),
  ],
  ['readCronOperation', 200, () => operationId('activateCron')],
  ['runCron', 200, () => ({ ...digest(), headers: { [OPERATION_ID_HEADER]: newId('opn') } })],
  ['listMigrations', 200, () => ({ query: { release: origins.gateway.releaseId } })],
  [
    'actOnMigration',
    200,
    () => ({
      params: { migration: 'addPriority' },
      body: { releaseId: origins.gateway.releaseId, action: 'run', changedAtMicros: now() },
    }),
  ],
  ['readMigrationOperation', 200, () => operationId('actOnMigration')],
  [
    'cancelScheduled',
    200,
    async () => ({
      params: { scheduledId: await scheduleWork() },
      headers: { [OPERATION_ID_HEADER]: newId('opn') },
    }),
  ],
  ['readMetrics', 200],
  ['readFunctionFigures', 200, () => ({ query: { target: 'channel:production' } })],
  ['listLogs', 200, () => ({ query: { after: undefined } })],
  ['readLogArchive', 200],
  ['pruneLogs', 200, () => ({ body: { apply: false, environmentId: undefined } })],
  ['readHealth', 200],
  ['runDoctor', 200],
  ['readProcessLiveness', 200],
  ['readAdmission', 200],
  [
    'invokeFunction',
    200,
    () => {
      const { body } = call('echo.mutation')
      return { body: { ...body, operationId: newId('opn') } }
    },
  ],
  ['query', 200, () => call('echo.query')],
  ['mutation', 200, () => call('echo.mutation')],
  ['action', 200, () => call('echo.action')],
  ['callFunction', 200, () => plainCall('echo.mutation')],
  ['callQuery', 200, () => ({ ...plainCall('echo.query'), query: { arguments: '{}' } })],
  ['readFunctionsDocument', 200, () => ({ query: { target: 'channel:production' } })],
  ...fileSteps({ from }, () => origins),
  ...backupSteps({ now, newId, from }, () => origins),
  ['retireRelease', 200, () => ({ params: { releaseId: from('publishWorkspace', 'releaseId') } })],
  ['archiveEnvironment', 200, () => after('updateEnvironment')],
  ['restoreEnvironment', 200, () => after('archiveEnvironment')],
]

const digest = () => ({ params: { cron: 'digest' } })
const WORKSPACE = {
  functions: FUNCTIONS,
  tables: TABLES,
  crons: CRONS,
  migrations: MIGRATIONS,
  http: ROUTES,
}

function scheduleWork(): Promise<string> {
  const releaseId = from('publishWorkspace', 'releaseId') as string
  return origins.gateway.engine.documents.change((transaction) =>
    insertWork(transaction, {
      function: 'messages.index',
      kind: 'mutation',
      releaseId,
      argumentsText: '{}',
      source: 'function',
      cron: null,
      dueAtMicros: BigInt(now()) + 60_000_000n,
    }),
  )
}

function failDelivery({ mount }: { readonly mount: string }): Promise<string> {
  const route = ROUTES[0]!
  return origins.gateway.engine.documents.change(async (transaction) => {
    const id = await insertWork(transaction, {
      function: route.function,
      kind: 'mutation',
      releaseId: origins.gateway.releaseId,
      argumentsText: encodeStored(DELIVERY),
      source: 'http',
      cron: null,
      http: { mount, route: route.name, event: 'evt', method: 'POST', path: '/', bytes: 0 },
      dueAtMicros: 0n,
    })
    const failure = { errorCode: 'FUNCTION_FAILED', errorMessage: 'it failed' }
    await finishWork(transaction, id, { state: 'failed', attempts: 1, atMicros: 1n, ...failure })
    return id
  })
}

/** Path parameters of the Environment that the server composes. */
const inEnvironment = (): Readonly<Record<string, string>> => {
  const { projectId, environmentId } = origins.product.root.descriptor
  return { projectId, environmentId }
}

test('the steps call every operation once', () => {
  expect(STEPS.map(([name]) => name).toSorted()).toEqual(
    operations.map(({ name }) => name).toSorted(),
  )
})

describe('requests that match the schemas', () => {
  const steps = STEPS.map(([name, status, stateOf = (): State => ({})], i) => {
    return { name, status, stateOf, seed: SEED + i }
  })

  test.each(steps)(
    'the answer is the documented one for $name: $status',
    async ({ name, status, stateOf, seed }) => {
      const operation = operationOf(name)
      const state = await stateOf()
      const params = { ...inEnvironment(), ...state.params }
      const good = validRequest(contract, operation, { ...state, params }, seed)
      const { schema } = operation.body ?? {}
      if (schema != null) expect(contract.problem(schema, good.body)).toBeNull()
      const response = await origins.send(operation, good)
      const checked = await contract.check(operation, response)
      expect(checked.status, JSON.stringify([good, checked.body])).toBe(status)
      answered[name] = checked.body
      sent.set(name, good)
      await origins.product.serving.whenIdle()
    },
  )
})

describe('requests that violate the schemas', () => {
  test.each(operations)(
    'each single defect of a request is rejected as documented for $name',
    async (operation) => {
      // Rules of the Product raise their own code.
      const rejected = operation.elsewhere
        ? ['REQUEST_INVALID']
        : ['PLATFORM_REQUEST_INVALID', 'PRODUCT_INVALID', 'REQUEST_INVALID']
      for (const [defect, bent] of invalidRequests(
        contract,
        operation,
        sent.get(operation.name)!,
      )) {
        const { status, code } = await contract.check(
          operation,
          await origins.send(operation, bent),
        )
        const isCode = rejected.includes(code ?? '') || operation.name === 'readObjectHeaders'
        const expected = isOverlooked(operation, defect)
          ? [200, [null]]
          : defect === 'function is malformed' && operation.name.startsWith('call')
            ? [404, ['ROUTE_NOT_FOUND']]
            : [400, rejected]
        expect([status, isCode ? rejected : [code]], `${operation.name}: ${defect}`).toEqual(
          expected,
        )
      }
    },
  )
})

/** Returns whether the operation ignores the defect: probes ignore all, others the affinity. */
function isOverlooked({ name }: DocumentedOperation, defect: string): boolean {
  const isFile = /^(?:download|read)(?:Signed)?File(?:Headers)?$/.test(name)
  const isCondition = isFile || name === 'readFunctionsDocument'
  const overlooked = isCondition ? /If-|Range|Affinity/i : /Affinity/i
  return ['readProcessLiveness', 'readAdmission'].includes(name) || overlooked.test(defect)
}

test.each(DECLARED_FAILURES)(
  'a $name that fails with $code is answered as documented',
  async (failure) => {
    const { name, code, status } = failure
    const sample = sent.get(name)!
    const argument = { key: 'code', value: { type: 'string', value: code } }
    const body = {
      ...(sample.body as object),
      function: `fail.${name}`,
      arguments: { type: 'object', value: [argument] },
      ...(name === 'mutation' && { operationId: newId('opn') }),
    }
    const operation = operationOf(name)
    const answer = await contract.check(
      operation,
      await origins.send(operation, { ...sample, body }),
    )
    expect([answer.status, answer.code]).toEqual([status, `APP_${code}`])
  },
)

test('a request without credentials is rejected as documented', async () => {
  for (const operation of operations.filter(({ security }) => security.length > 0)) {
    const anonymous = { ...operation, security: [] }
    const response = await origins.send(anonymous, sent.get(operation.name)!)
    const { status } = await contract.check(operation, response)
    expect(status, operation.name).toBe(401)
  }
})
