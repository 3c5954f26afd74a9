/** Makes a command line that an author can paste to call a first Function. */
import { quoted } from '../../client/visible-text.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { Json } from '../../value/strict-json.ts'
import type { FieldsJson, ValidatorJson } from '../../value/validators.ts'

/** Kinds in the order of preference. Actions are last, since they may call other services. */
const KINDS = ['query', 'mutation', 'action'] as const
/** Bound of the characters of sample arguments, so that the command is easy to paste. */
const ARGUMENTS_LENGTH_MAX = 200

/**
 * Returns the command. Prefers Queries, and of one kind a Function without arguments. Returns null
 * if every public Function needs an identity, or arguments that cannot be made up, such as the ID
 * of a document.
 */
export function sampleCall(
  rootPath: string,
  functions: readonly FunctionManifest[],
): string | null {
  const callable = functions
    .filter(
      ({ visibility, clients, auth }) =>
        visibility === 'public' && clients.length > 0 && (auth === 'none' || auth === 'optional'),
    )
    .flatMap(({ name, kind, arguments: fields }) => {
      const sample = sampleFields(fields)
      const text = sample === undefined ? null : JSON.stringify(sample)
      return text === null || text.length > ARGUMENTS_LENGTH_MAX ? [] : [{ name, kind, text }]
    })
  const isBare = (each: (typeof callable)[number]): boolean => each.text === '{}'
  const chosen = KINDS.map((wanted) => callable.filter(({ kind }) => kind === wanted))
    .map((ofKind) => ofKind.find(isBare) ?? ofKind[0])
    .find((each) => each !== undefined)
  if (chosen === undefined) return null
  const { name, text } = chosen
  return `svc call ${name}${text === '{}' ? '' : ` ${quoted(text)}`} --root ${quoted(rootPath)}`
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
