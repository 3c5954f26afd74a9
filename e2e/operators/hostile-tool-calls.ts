/** Tool calls of an agent that was misled: none of them may change anything, or be answered. */
import { MANAGEMENT_OPERATIONS } from '../../src/wire/operations/management.ts'
import { PATH_PARAMETERS } from '../../src/wire/operations/parameters.ts'

export interface ToolCall {
  readonly name: string
  readonly arguments: unknown
}

const LONG = 'A'.repeat(1024 * 1024)
const ULID = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
const TRAVERSALS = [
  '..',
  '.',
  '../../configuration/API_KEY',
  '%2e%2e',
  '..%2f..%2fconfiguration',
  'a/../../../archive',
  'x\u0000y',
  'x\ny',
  '?apply=true',
  '#',
  ' ',
  '',
]
const PROPERTIES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']
const FOREIGN = { projectId: `prj_${ULID}`, environmentId: `env_${ULID}` }

/** Path parameters whose values have the right form. */
const VALUES: Readonly<Record<string, string>> = {
  operatorId: `opr_${ULID}`,
  sessionId: `ops_${ULID}`,
  invitationId: `opi_${ULID}`,
  operationId: `opn_${ULID}`,
  backupId: `bkp_${ULID}`,
  releaseId: `rel_${ULID}`,
  scheduledId: `sch_${ULID}`,
  clientId: `app_${ULID}`,
  credentialId: `crd_${ULID}`,
  bucketId: `bkt_${ULID}`,
  storageKeyId: `stk_${ULID}`,
  objectKey: 'a',
  channel: 'production',
  name: 'API_KEY',
  cron: 'daily',
  mount: 'main',
  migration: 'first',
  table: 'channels',
  documentId: `channels_${ULID}`,
}

function parametersOf(path: string): Record<string, string> {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
  const given = names.filter((name) => name in VALUES && name in PATH_PARAMETERS)
  return Object.fromEntries(given.map((name) => [name, VALUES[name]!]))
}

/** Returns the operations that need more than reading, by their names. */
function changes(): ToolCall[] {
  const operations = MANAGEMENT_OPERATIONS.filter(
    ({ method, access }) =>
      method !== 'GET' || (access.kind === 'operator' && access.capability !== null),
  )
  return operations.flatMap(({ name, path }) => [
    { name, arguments: parametersOf(path) },
    { name, arguments: { ...parametersOf(path), body: { changedAtMicros: '1', apply: true } } },
  ])
}

/** Returns calls of tools of the session with arguments that no schema has. */
function arguments_(): ToolCall[] {
  const read = (name: string, given: unknown): ToolCall => ({ name, arguments: given })
  const parameters: readonly (readonly [string, string])[] = [
    ['readBucket', 'bucketId'],
    ['listDeliveries', 'mount'],
    ['listCredentials', 'clientId'],
    ['readCronOperation', 'operationId'],
  ]
  return [
    ...parameters.flatMap(([name, parameter]) =>
      [...TRAVERSALS, LONG, 7, null, true, ['a'], { a: 1 }].map((value) =>
        read(name, { [parameter]: value }),
      ),
    ),
    // The parser of the protocol drops the field __proto__ of arguments, so it is a value here.
    ...PROPERTIES.map((name) => read('listLogs', JSON.parse(`{"limit":{"${name}":{"a":1}}}`))),
    ...PROPERTIES.slice(1).map((name) => read('readStatus', { [name]: { apply: true } })),
    ...[FOREIGN, { projectId: FOREIGN.projectId }, { method: 'DELETE' }, { path: '/v1' }].map(
      (given) => read('readEnvironment', given),
    ),
    ...[{ headers: { authorization: 'x' } }, { body: {} }, { query: {} }, { params: {} }].map(
      (given) => read('listConfiguration', given),
    ),
    ...[0, -1, 1.5, 1e308, '1 or 1=1', '1&apply=true', ['1', '2'], LONG].map((limit) =>
      read('listLogs', { limit }),
    ),
    ...['../..', LONG, 'channel:production&x=1', 'workspace:'].map((target) =>
      read('listTables', { target }),
    ),
    ...[-1, 1.5, '0', null, LONG].map((resultOffset) => read('readStatus', { resultOffset })),
    read('readStatus', Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`k${i}`, i]))),
  ]
}

/** Returns calls of tools that do not exist. */
function names(): ToolCall[] {
  const texts = [
    ...PROPERTIES,
    'deleteEverything',
    'readStatus\n',
    ' readStatus',
    'READSTATUS',
    'readStatus/../setConfiguration',
    'DELETE /v1/auth/sessions',
    '',
    LONG,
  ]
  return texts.map((name) => ({ name, arguments: {} }))
}

export function hostileToolCalls(): readonly ToolCall[] {
  return [...changes(), ...arguments_(), ...names()]
}
