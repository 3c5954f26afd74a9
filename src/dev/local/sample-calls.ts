/** Makes command lines that an author can paste to call a first Function. */

import type { FunctionManifest } from '../../value/manifest.ts'
import { compilePlainDecoder } from '../../value/plain-json/decoding.ts'
import { shellQuoted } from '../../value/shell/shell-words.ts'
import { type Json, parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { FieldsJson, ValidatorJson } from '../../value/validators.ts'

/** Kinds in the order of preference. Actions are last, since they may call other services. */
const KINDS = ['query', 'mutation', 'action'] as const
/** Bound of the characters of sample arguments, so that the command is easy to paste. */
const ARGUMENTS_LENGTH_MAX = 200

/** A call of a Function, with arguments that were made up. */
export interface SampleCall {
  readonly definition: FunctionManifest
  /** The arguments as plain JSON. */
  readonly text: string
}

/**
 * Returns the call. Prefers Queries, and of one kind a Function without arguments. Returns null if
 * every public Function needs an identity, or arguments that cannot be made up, such as the ID of a
 * document.
 */
export function sampleCall(functions: readonly FunctionManifest[]): SampleCall | null {
  const callable = functions
    .filter(
      ({ visibility, clients, auth }) =>
        visibility === 'public' && clients.length > 0 && (auth === 'none' || auth === 'optional'),
    )
    .flatMap((definition) => {
      const sample = sampleFields(definition.arguments)
      const text = sample === undefined ? null : JSON.stringify(sample)
      return text === null || text.length > ARGUMENTS_LENGTH_MAX ? [] : [{ definition, text }]
    })
  const isBare = (each: (typeof callable)[number]): boolean => each.text === '{}'
  const [chosen = null] = KINDS.map((wanted) =>
    callable.filter((each) => each.definition.kind === wanted),
  )
    .map((ofKind) => ofKind.find(isBare) ?? ofKind[0])
    .filter((each) => each !== undefined)
  return chosen
}

export function sampleCommand({ definition, text }: SampleCall, rootPath: string): string {
  const given = text === '{}' ? '' : ` ${shellQuoted(text)}`
  return `svc call ${definition.name}${given} --root ${shellQuoted(rootPath)}`
}

/** Returns the command that opens the console of the root. */
export function consoleCommand(rootPath: string): string {
  return `svc console --root ${shellQuoted(rootPath)}`
}

/** Returns the command that editors start for their agents. */
export function agentsCommand(rootPath: string): string {
  return `svc mcp --root ${shellQuoted(rootPath)}`
}

export interface CurlOptions {
  /** Origin of the application API. */
  readonly url: string
  readonly target: string
  readonly key: string
}

/** Returns null if the arguments have a place whose type the Function leaves open. */
export function sampleCurl(
  { definition: { name, arguments: fields }, text }: SampleCall,
  { url, target, key }: CurlOptions,
): string | null {
  try {
    compilePlainDecoder({ type: 'object', fields })(parseStrictJson(text), 'arguments')
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
  const headers = [
    'Content-Type: application/json',
    `X-Service-Key: ${key}`,
    `X-Service-Target: ${target}`,
  ]
  const options = headers.map((header) => `-H ${shellQuoted(header)}`).join(' ')
  return `curl -sS ${shellQuoted(`${url}/v1/functions/${name}`)} ${options} -d ${shellQuoted(text)}`
}

/** Returns plain JSON for the required fields; undefined if one of them cannot be made up. */
function sampleFields(fields: FieldsJson): { readonly [name: string]: Json } | undefined {
  const entries = Object.entries(fields).flatMap(([name, validator]) =>
    validator.type === 'optional' ? [] : [[name, sampleOf(validator)] as const],
  )
  if (entries.some(([, value]) => value === undefined)) return undefined
  return Object.fromEntries(entries) as { readonly [name: string]: Json }
}

function sampleOf(validator: ValidatorJson): Json | undefined {
  switch (validator.type) {
    case 'null':
    case 'nullable':
    case 'any':
      return null
    case 'boolean':
      return true
    case 'int64':
    case 'float64':
      return numberFor(validator)
    case 'string':
      return textFor(validator)
    case 'bytes':
      return ''
    case 'timestamp':
      return '2026-01-01T00:00:00Z'
    case 'literal': {
      const { value } = validator
      if ('string' in value) return value.string
      return 'boolean' in value ? value.boolean : value.int64
    }
    case 'array':
      return []
    case 'record':
      return {}
    case 'object':
      return sampleFields(validator.fields)
    case 'union':
      return validator.members.map(sampleOf).find((value) => value !== undefined)
    case 'open':
      return sampleOf(validator.inner)
    case 'id':
      return undefined
  }
}

type BoundsOf<Type extends ValidatorJson['type']> = Extract<ValidatorJson, { readonly type: Type }>

function numberFor({ minimum, maximum }: BoundsOf<'int64' | 'float64'>): Json {
  if (minimum !== undefined && Number(minimum) > 1) return minimum
  return maximum !== undefined && Number(maximum) < 1 ? maximum : 1
}

/** Returns a string within the bounds; undefined for a pattern, whose matches cannot be made up. */
function textFor({ minimumLength = 0, maximumLength, pattern }: BoundsOf<'string'>) {
  if (pattern !== undefined) return undefined
  const text = 'text'.padEnd(Math.min(minimumLength, ARGUMENTS_LENGTH_MAX + 1), 't')
  return maximumLength === undefined ? text : text.slice(0, maximumLength)
}
