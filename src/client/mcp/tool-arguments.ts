/**
 * Makes the request of a tool from the arguments of an agent. A field that the schema does not name
 * is rejected before anything is sent, and a path parameter stays one segment of its path.
 */
import { Fault, type Violation } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import { idMillis, type OperationId } from '../../value/ids.ts'
import { isJsonObject } from '../../value/strict-json.ts'
import { JSON_BODY_BYTES_MAX } from '../../wire/operations/operation.ts'
import { PATH_PARAMETERS } from '../../wire/operations/parameters.ts'
import { jsonSchemaOf } from '../../wire/reading/json-schema.ts'
import { read } from '../../wire/reading/read.ts'
import type { Schema } from '../../wire/schema.ts'
import type { AnyInput } from '../requests/operation-requests.ts'
import { BODY_FIELD, OFFSET_FIELD, OPERATION_ID_FIELD, type Tool } from './tools.ts'

const CODE = 'PLATFORM_REQUEST_INVALID'
const AT = 'arguments'
/** Characters of one text of the path or of the query. */
const TEXT_CHARACTERS_MAX = 8_192

export interface ToolRequest {
  readonly input: AnyInput
  /** Null for a request without an Operation ID. */
  readonly operationId: OperationId | null
  /** Characters of the result to leave out. */
  readonly offset: number
}

type Arguments = Readonly<Record<string, unknown>>

/** Reads the arguments. Throws PLATFORM_REQUEST_INVALID with what is wrong. */
export function toolRequestOf(tool: Tool, given: unknown, system: System): ToolRequest {
  const values: unknown = given ?? {}
  if (!isJsonObject(values)) throw invalid({ path: AT, rule: 'an object' })
  const queryFields = fieldsOf(tool.operation.query)
  requireKnown(tool, values, queryFields)
  const params = Object.fromEntries(
    tool.parameters.map((name) => [name, parameterOf(values, name)]),
  )
  const query = queryOf(tool, values, queryFields)
  const operationId = operationIdOf(tool, values, system)
  const body = bodyOf(tool, values, timeOf(operationId, system))
  return {
    input: { params, query, ...(operationId !== null && { operationId }), ...(body && { body }) },
    operationId,
    offset: offsetOf(tool, values),
  }
}

function invalid(violation: Violation): Fault {
  return new Fault(CODE, { violations: [violation] })
}

function fieldsOf(query: Schema<unknown>): readonly string[] {
  return Object.keys((jsonSchemaOf(query).properties ?? {}) as object)
}

/** Names are compared with the list, never looked up: `constructor` is the name of no field. */
function requireKnown(tool: Tool, values: Arguments, queryFields: readonly string[]): void {
  const { operation, parameters, body, annotations } = tool
  const known: readonly string[] = [
    ...parameters,
    ...queryFields,
    ...(body === null ? [] : [BODY_FIELD]),
    ...(operation.operationId === 'none' ? [] : [OPERATION_ID_FIELD]),
    ...(annotations.readOnlyHint ? [OFFSET_FIELD] : []),
  ]
  if (Reflect.ownKeys(values).every((name) => known.includes(String(name)))) return
  throw invalid({ path: AT, rule: `no field besides ${known.join(', ') || 'none'}` })
}

function given(values: Arguments, name: string): unknown {
  return Object.hasOwn(values, name) ? values[name] : undefined
}

function parameterOf(values: Arguments, name: Tool['parameters'][number]): string {
  const path = `${AT}.${name}`
  const value = read<string>(PATH_PARAMETERS[name], given(values, name), CODE, path)
  // A URL resolves these segments, also where they are percent-encoded.
  if (value === '.' || value === '..') throw invalid({ path, rule: 'neither . nor ..' })
  return value
}

function queryOf(
  { operation }: Tool,
  values: Arguments,
  fields: readonly string[],
): Readonly<Record<string, string>> {
  const entries = fields.flatMap((name): [string, string][] => {
    const value = given(values, name)
    return value === undefined ? [] : [[name, textOf(value, `${AT}.${name}`)]]
  })
  const query = Object.fromEntries(entries)
  read(operation.query, query, CODE, AT)
  return query
}

function textOf(value: unknown, path: string): string {
  const isText = typeof value === 'string' && value.length <= TEXT_CHARACTERS_MAX
  if (isText || typeof value === 'boolean' || Number.isSafeInteger(value)) return String(value)
  throw invalid({ path, rule: `a text of at most ${TEXT_CHARACTERS_MAX} characters or an integer` })
}

function operationIdOf({ operation }: Tool, values: Arguments, system: System): OperationId | null {
  if (operation.operationId === 'none') return null
  const value = given(values, OPERATION_ID_FIELD)
  if (value === undefined) return system.ids.make('opn')
  return read(PATH_PARAMETERS.operationId, value, CODE, `${AT}.${OPERATION_ID_FIELD}`)
}

/** The time in the Operation ID, so that a repeated call makes an equal request. */
function timeOf(operationId: OperationId | null, system: System): string {
  if (operationId === null) return String(system.nowMicros())
  return String(BigInt(idMillis(operationId)) * 1000n)
}

/** Returns the JSON of the body; null for an operation without one. */
function bodyOf({ body, times }: Tool, values: Arguments, time: string): Uint8Array | null {
  if (body === null) return null
  const path = `${AT}.${BODY_FIELD}`
  const value = given(values, BODY_FIELD)
  if (!isJsonObject(value)) throw invalid({ path, rule: 'an object' })
  const missing = times.filter((name) => !Object.hasOwn(value, name))
  const whole = { ...value, ...Object.fromEntries(missing.map((name) => [name, time])) }
  const bytes = new TextEncoder().encode(JSON.stringify(whole))
  const { bytesMax = JSON_BODY_BYTES_MAX } = body
  if (bytes.length > bytesMax) throw invalid({ path, rule: `at most ${bytesMax} bytes of JSON` })
  read(body.schema, whole, CODE, path)
  return bytes
}

function offsetOf({ annotations }: Tool, values: Arguments): number {
  const value = given(values, OFFSET_FIELD)
  if (value === undefined || !annotations.readOnlyHint) return 0
  if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value)
  throw invalid({ path: `${AT}.${OFFSET_FIELD}`, rule: 'an integer of at least 0' })
}
