/** `svc data`: documents of the linked Environment, read and written without a Function. */
import { encodeUlid } from '../../../value/ids.ts'
import { plainToArguments, plainToValue, valueToPlain } from '../../../value/plain.ts'
import { type Json, parseStrictJson } from '../../../value/strict-json.ts'
import { decodeTagged, encodeTagged } from '../../../value/tagged.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import type { FieldsJson, ValidatorJson } from '../../../value/validators.ts'
import type { Value } from '../../../value/values.ts'
import type { DocumentField } from '../../../wire/data.ts'
import {
  deleteDocument,
  insertDocument,
  queryDocuments,
  readDocument,
  replaceDocument,
} from '../../../wire/operations/data.ts'
import { argument, type CommandSpec, command, flag, option } from '../../contexts.ts'
import { requestCommand } from '../../request-commands.ts'
import type { Remote } from '../../roots/remotes.ts'
import { usage } from '../../usage.ts'
import { tablesCommand } from '../catalogs.ts'
import { changeIntent, changeOptions, REMOTE } from '../operations.ts'
import { openTarget } from '../targets.ts'
import { compactCommand } from './compactions.ts'
import { exportCommand } from './exports.ts'
import { importCommand } from './imports.ts'
import { fieldsOf, TABLE, TAGGED, TARGET, valid } from './tables.ts'

const DOCUMENT = argument('DOCUMENT', 'The ID of the document')
const CHANGE = { ...changeOptions('the document'), target: TARGET, tagged: TAGGED } as const
const OPERATORS = ['<=', '>=', '=', '<', '>'] as const
const OPS = { '=': 'eq', '<': 'lt', '<=': 'lte', '>': 'gt', '>=': 'gte' } as const

const query: CommandSpec = requestCommand({
  name: 'data query',
  summary: 'List documents of a table in the order of an index',
  details: [
    '--where names fields of the index in their order: equal values, then bounds of the next',
    'field, such as "room=general,_createdAt>=2026-01-31T00:00:00Z". A value is JSON or a text.',
  ],
  positionals: [TABLE],
  options: {
    ...REMOTE,
    target: TARGET,
    index: option('NAME', 'The index; by default the creation order'),
    where: option('BOUNDS', 'Bounds of the fields of the index'),
    desc: flag('Start at the end of the index'),
    limit: option('COUNT', 'Documents of a page, 1 to 1000; 100 by default'),
    after: option('CURSOR', 'Continue after the page with this cursor'),
    tagged: TAGGED,
  },
  examples: ['svc data query messages --target channel:production --index byChannel'],
  input: (options, [table]) => ({ ...options, table: table! }),
  async open(context, at, { table, where }) {
    const remote = await openTarget(context, at, query)
    const range =
      where === undefined ? [] : boundsOf(where, await fieldsOf(remote, remote.target, table))
    return { ...remote, range }
  },
  progress: 'reading the documents',
  async request({ call, target, range }, { table, index, after, ...options }) {
    const limit = options.limit === undefined ? undefined : Number(options.limit)
    const order = options.desc ? 'desc' : 'asc'
    const page = await call(queryDocuments, {
      body: { target, table, range, order, index, limit, after },
    })
    return { ...page, items: page.items.map((item) => shown(item, options.tagged)) }
  },
  rows: ({ items }) => items,
  columns: {
    DOCUMENT: 'id',
    REVISION: 'revision',
    CREATED: 'createdAtMicros',
    VALUE: ({ value }) => JSON.stringify(value),
  },
  note: ({ next }) => (next === null ? null : `Next page: --after ${next}`),
})

const get: CommandSpec = requestCommand({
  name: 'data get',
  summary: 'Show a document',
  positionals: [TABLE, DOCUMENT],
  options: { ...REMOTE, target: TARGET, tagged: TAGGED },
  examples: ['svc data get messages messages_... --target channel:production'],
  input: ({ tagged }, [table, id]) => ({ tagged, table: table!, id: id! }),
  open: (context, at) => openTarget(context, at, get),
  progress: 'reading the document',
  async request(remote, { tagged, table, id }) {
    const { document } = await read(remote, remote.target, table, id)
    return { version: 1, document: shown(document, tagged) }
  },
  lines: ({ document }) => [JSON.stringify(document.value, null, 2)],
  note: ({ document }) => `Revision ${document.revision}${hiddenNote(document)}`,
})

const put: CommandSpec = command({
  name: 'data put',
  summary: 'Insert a document, or replace all fields of one',
  details: [
    'Without --id a document is inserted under a new ID. With --id the document is replaced at the',
    'revision of --expected, or at the newest one, and inserted if --expected is 0. The same line',
    'with the same --operation-id, --id and --expected changes the document once.',
  ],
  positionals: [TABLE, argument('JSON', 'The fields as JSON')],
  options: {
    ...CHANGE,
    id: option('ID', 'The document to replace, or to insert with --expected 0'),
  },
  examples: [`svc data put channels '{"name":"general"}' --target channel:production`],
  async run(context, options, [table, text]) {
    const { operationId, changedAtMicros, expected } = changeIntent(context, put, options)
    const { tagged, id } = options
    const { target, ...remote } = await openTarget(context, options, put)
    const json = valid(() => parseStrictJson(text!))
    const value = tagged
      ? valid(() => decodeTagged(json))
      : valid((fields) => plainToArguments(json, fields), await fieldsOf(remote, target, table!))
    const isInsert = id === undefined || expected === '0'
    const documentId = id ?? newDocumentId(context.environment.system, table!)
    const shared = { target, value: JSON.parse(encodeTagged(value)) as Json, changedAtMicros }
    const expectedRevision = isInsert
      ? undefined
      : (expected ?? (await read(remote, target, table!, documentId)).document.revision)
    await context.output.note(`Operation ${operationId}`)
    const changed = isInsert
      ? await remote.call(insertDocument, {
          params: { table: table! },
          operationId,
          body: { ...shared, documentId },
        })
      : await remote.call(replaceDocument, {
          params: { table: table!, documentId },
          operationId,
          body: { ...shared, expectedRevision: expectedRevision! },
        })
    const { document } = changed
    await context.output.result({ ...changed, document: shown(document, tagged) } as Json, [
      `${document.id} is at revision ${document.revision}.`,
    ])
  },
})

const remove: CommandSpec = command({
  name: 'data delete',
  summary: 'Delete a document',
  positionals: [TABLE, DOCUMENT],
  options: CHANGE,
  examples: ['svc data delete messages messages_... --target channel:production'],
  async run(context, options, [table, id]) {
    const { operationId, changedAtMicros, expected } = changeIntent(context, remove, options)
    const { tagged } = options
    const { target, ...remote } = await openTarget(context, options, remove)
    const expectedRevision = expected ?? (await read(remote, target, table!, id!)).document.revision
    await context.output.note(`Operation ${operationId}`)
    const changed = await remote.call(deleteDocument, {
      params: { table: table!, documentId: id! },
      operationId,
      body: { target, expectedRevision, changedAtMicros },
    })
    await context.output.result({ ...changed, document: shown(changed.document, tagged) } as Json, [
      `${id} is deleted.`,
    ])
  },
})

/** `svc tables` under the name at which a user of `svc data` looks for it. */
const tables: CommandSpec = {
  ...tablesCommand,
  name: 'data tables',
  examples: ['svc data tables --target channel:production'],
}

export const dataCommands: readonly CommandSpec[] = [
  tables,
  query,
  get,
  put,
  remove,
  importCommand,
  exportCommand,
  compactCommand,
]

function read(remote: Remote, target: string, table: string, documentId: string) {
  return remote.call(readDocument, { params: { table, documentId }, query: { target } })
}

/** Says how many fields a document has that the target does not declare. */
function hiddenNote({ hiddenFields }: Pick<DocumentField, 'hiddenFields'>): string {
  if (hiddenFields === undefined) return ''
  const fields = hiddenFields === 1 ? '1 field' : `${hiddenFields} fields`
  return `; ${fields} of other Releases, which the target does not declare`
}

/** Returns the document with its fields in plain JSON, or as tagged values. */
function shown({ value, ...document }: DocumentField, isTagged: boolean) {
  const fields = isTagged ? (value as Json) : valueToPlain(decodeTagged(value as Json))
  return { ...document, value: fields }
}

/** Parses bounds such as `room=general,_createdAt>=...` by the types of the fields. */
function boundsOf(text: string, fields: FieldsJson) {
  return text.split(',').map((bound) => {
    const operator = OPERATORS.find((each) => bound.includes(each))
    const at = operator === undefined ? -1 : bound.indexOf(operator)
    const field = bound.slice(0, at).trim()
    const validator = typeOf(fields, field)
    if (operator === undefined || validator === null) {
      const known = [...Object.keys(fields), '_createdAt'].join(', ')
      throw usage(`--where needs bounds such as name=value; the fields are ${known}.`, query)
    }
    const value = boundValue(bound.slice(at + operator.length).trim(), validator)
    return { field, op: OPS[operator], value: JSON.parse(encodeTagged(value)) as Json }
  })
}

function typeOf(fields: FieldsJson, field: string): ValidatorJson | null {
  if (field === '_createdAt') return { type: 'timestamp' }
  const json = Object.hasOwn(fields, field) ? fields[field]! : null
  return json?.type === 'optional' ? json.inner : json
}

/** Treats the text as a plain string if it is not JSON of the expected type. */
function boundValue(text: string, validator: ValidatorJson): Value {
  try {
    return plainToValue(parseStrictJson(text), validator)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return valid(() => plainToValue(text, validator))
  }
}

function newDocumentId(
  system: { nowMillis(): number; randomBytes(length: number): Uint8Array },
  table: string,
): string {
  return `${table}_${encodeUlid(system.nowMillis(), system.randomBytes(10))}`
}
