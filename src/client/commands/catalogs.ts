/** `svc functions` and `svc tables`: what a target offers and what it stores. */
import { valueToPlain } from '../../value/plain.ts'
import { fromStoredJson } from '../../value/stored.ts'
import type { Json } from '../../value/strict-json.ts'
import type { FieldsJson, OptionalJson, ValidatorJson } from '../../value/validators.ts'
import { listFunctions, listTables } from '../../wire/operations/catalogs.ts'
import { type CommandSpec, command, option } from '../contexts.ts'
import { openRemote } from '../roots/remotes.ts'
import { REMOTE } from './operations.ts'
import { targetOf } from './targets.ts'

const OPTIONS = {
  ...REMOTE,
  target: option('TARGET', 'channel:NAME, workspace:NAME or the like; needed without svc dev'),
} as const

export const functionsCommand: CommandSpec = command({
  name: 'functions',
  summary: 'List the Functions of a target, with their arguments and results',
  options: OPTIONS,
  examples: ['svc functions --target workspace:default'],
  async run(context, { target: given, ...at }) {
    const { output } = context
    const remote = await openRemote(context, at)
    const target = targetOf(remote, given, functionsCommand)
    const request = remote.call(listFunctions, { query: { target }, subjects: { target } })
    const catalog = await output.progress('reading the Functions', request)
    const rows = catalog.functions.map((item) => [
      item.name,
      item.kind,
      item.visibility === 'internal' ? 'internal' : item.clients.join(',') || '-',
      item.auth,
      fieldsText(item.arguments),
      validatorText(item.returns),
    ])
    const head = ['FUNCTION', 'KIND', 'CLIENTS', 'AUTH', 'ARGUMENTS', 'RETURNS']
    await output.result(catalog as unknown as Json, [
      `${output.bold(catalog.releaseId)}  ${target}`,
      '',
      ...output.table(head, rows),
    ])
  },
})

export const tablesCommand: CommandSpec = command({
  name: 'tables',
  summary: 'List the tables of a target, with their fields and indexes',
  options: OPTIONS,
  examples: ['svc tables --target workspace:default'],
  async run(context, { target: given, ...at }) {
    const { output } = context
    const remote = await openRemote(context, at)
    const target = targetOf(remote, given, tablesCommand)
    const request = remote.call(listTables, { query: { target } })
    const catalog = await output.progress('reading the tables', request)
    const tables = catalog.tables.flatMap(({ name, fields, indexes }) => [
      '',
      output.bold(name),
      ...output.table(
        ['FIELD', 'TYPE'],
        Object.entries(fields).map(([field, json]) => [field, fieldText(json)]),
      ),
      ...indexes.map(({ name, fields, unique }) => {
        return `${unique ? 'unique' : 'index'} ${name}(${fields.join(', ')})`
      }),
    ])
    await output.result(catalog as unknown as Json, [
      `${output.bold(catalog.releaseId)}  ${target}`,
      ...tables,
    ])
  },
})

/** Returns a type in the notation of TypeScript, such as `{ body: string, likes?: int64 }`. */
export function validatorText(json: ValidatorJson): string {
  switch (json.type) {
    case 'id':
      return `id(${json.table})`
    case 'literal':
      return 'string' in json.value
        ? JSON.stringify(json.value.string)
        : String(Object.values(json.value)[0])
    case 'array':
      return `${grouped(json.items)}[]`
    case 'object':
      return fieldsText(json.fields)
    case 'record':
      return `record(${validatorText(json.values)})`
    case 'union':
      return json.members.map(validatorText).join(' | ')
    case 'open':
      return `open(${validatorText(json.inner)})`
    case 'nullable':
      return `${validatorText(json.inner)} | null`
    default:
      return json.type
  }
}

function fieldsText(fields: FieldsJson): string {
  const entries = Object.entries(fields).map(([name, json]) => {
    return json.type === 'optional'
      ? `${name}?: ${validatorText(json.inner)}${defaultText(json)}`
      : `${name}: ${validatorText(json)}`
  })
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
}

/** Returns the type of a field of a table, such as `optional int64 = 3`. */
export function fieldText(json: FieldsJson[string]): string {
  if (json.type !== 'optional') return validatorText(json)
  return `optional ${validatorText(json.inner)}${defaultText(json)}`
}

/** Characters of a default that a table shows. `--json` has the whole one. */
const DEFAULT_SHOWN_MAX = 40

/** Returns ` = 3` for the default of a field, as plain JSON; empty without a default. */
function defaultText(json: OptionalJson): string {
  if (json.default === undefined) return ''
  const text = JSON.stringify(valueToPlain(fromStoredJson(json.default)))
  return ` = ${text.length > DEFAULT_SHOWN_MAX ? `${text.slice(0, DEFAULT_SHOWN_MAX - 1)}…` : text}`
}

/** A type that is one of several stands in parentheses before `[]`. */
function grouped(json: ValidatorJson): string {
  const text = validatorText(json)
  return json.type === 'union' || json.type === 'nullable' ? `(${text})` : text
}
