/** Generates requests from the schemas of the document: valid ones, and ones with one defect. */

import { isName } from '../../src/value/names.ts'
import { fc } from '../properties.ts'
import type { Contract, DocumentedOperation, Schema } from './contract.ts'

/** Rules that JSON Schema cannot express, by the name of the component. */
const COMPONENTS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  Name: fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 64 })
    .map((text) => text.normalize('NFC'))
    .filter(isName),
}
const DEPTH_MAX = 4

/** Generates values that the schema accepts. */
export function arbitraryOf(contract: Contract, schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  const inner = (each: unknown) => arbitraryOf(contract, each as Schema, depth + 1)
  if (schema.$ref !== undefined) {
    const name = (schema.$ref as string).split('/').at(-1)!
    return COMPONENTS[name] ?? arbitraryOf(contract, contract.resolve(schema), depth + 1)
  }
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...(schema.enum as unknown[]))
  const branches = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined
  // The first branch of a recursive union ends the recursion.
  if (branches !== undefined) {
    return depth > DEPTH_MAX ? inner(branches[0]) : fc.oneof(...branches.map(inner))
  }
  switch (schema.type) {
    case 'null':
      return fc.constant(null)
    case 'boolean':
      return fc.boolean()
    case 'integer': {
      const { minimum = 0, maximum = 2 ** 31 } = schema as { minimum?: number; maximum?: number }
      return fc.integer({ min: minimum, max: maximum })
    }
    case 'string':
      return arbitraryText(schema)
    case 'array': {
      const maxLength = depth > DEPTH_MAX ? 0 : Math.min(3, (schema.maxItems as number) ?? 3)
      return fc.array(inner(schema.items), { maxLength })
    }
    default:
      return arbitraryObject(contract, schema, depth)
  }
}

function arbitraryText(schema: Schema): fc.Arbitrary<string> {
  const { pattern, maxLength = 64 } = schema as { pattern?: string; maxLength?: number }
  if (pattern === undefined) return fc.string({ maxLength })
  const also = (schema.allOf ?? []) as readonly { readonly pattern: string }[]
  return fc
    .stringMatching(new RegExp(pattern, 'u'))
    .filter((text) => also.every((each) => new RegExp(each.pattern).test(text)))
}

function arbitraryObject(contract: Contract, schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const properties = (schema.properties ?? {}) as Readonly<Record<string, Schema>>
  const arbitraries = Object.entries(properties).map(([name, each]) => {
    return [name, arbitraryOf(contract, each, depth + 1)] as const
  })
  const requiredKeys = (schema.required ?? []) as string[]
  return fc.record(Object.fromEntries(arbitraries), { requiredKeys })
}

/** One request. A null body is left out. */
export interface Sample {
  readonly params: Readonly<Record<string, string>>
  readonly query: readonly (readonly [string, string])[]
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/** Values that a request needs in order to have an effect; undefined removes a field. */
export interface State {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Readonly<Record<string, unknown>> | Uint8Array
}

/**
 * Creates a valid request from the schemas, with the values of the state in place of random ones.
 */
export function validRequest(
  contract: Contract,
  operation: DocumentedOperation,
  state: State,
  seed: number,
): Sample {
  const draw = <T>(arbitrary: fc.Arbitrary<T>): T => fc.sample(arbitrary, { seed, numRuns: 1 })[0]!
  const drawn = (location: string): Record<string, string> => {
    const parameters = operation.parameters.filter((each) => each.in === location)
    return Object.fromEntries(
      parameters
        .filter(({ required }) => required || draw(fc.boolean()))
        .map(({ name, schema }) => {
          const written = location === 'header' ? name.toLowerCase() : name
          return [written, String(draw(arbitraryOf(contract, schema)))]
        }),
    )
  }
  const { body } = operation
  const query = Object.entries({ ...drawn('query'), ...state.query })
  return {
    params: { ...drawn('path'), ...state.params },
    query: query.filter((pair): pair is [string, string] => pair[1] !== undefined),
    headers: { ...drawn('header'), ...state.headers },
    body: state.body instanceof Uint8Array ? state.body : drawnBody(),
  }

  function drawnBody(): unknown {
    if (body?.schema == null) return null
    const whole = { ...(draw(arbitraryOf(contract, body.schema)) as object), ...state.body }
    return Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== undefined))
  }
}

const INVALID: readonly unknown[] = [null, true, -1, 0.5, '\u0007', 'x'.repeat(1_000), [], [[]], {}]

/** Creates variants of a request, each with one defect that the schemas reject, and its name. */
export function invalidRequests(
  contract: Contract,
  operation: DocumentedOperation,
  valid: Sample,
): [string, Sample][] {
  const invalid: [string, Sample][] = [
    ['an undeclared parameter', { ...valid, query: [...valid.query, ['surprise', '1']] }],
  ]
  for (const { name, in: location, required, schema } of operation.parameters) {
    if (location === 'header') {
      const { [name.toLowerCase()]: _, ...others } = valid.headers
      // Servers ignore conditions that they do not understand, so these may be any text.
      if (contract.problem(schema, '') !== null) {
        invalid.push([`${name} is malformed`, { ...valid, headers: { ...others, [name]: '' } }])
      }
      if (required) invalid.push([`${name} is missing`, { ...valid, headers: others }])
    }
    if (location === 'path') {
      // An object key may be any text without NUL.
      const malformed = name === 'objectKey' ? '\0' : '!'
      const params = { ...valid.params, [name]: malformed }
      invalid.push([`${name} is malformed`, { ...valid, params }])
    }
    if (location !== 'query') continue
    const rest = valid.query.filter(([each]) => each !== name)
    invalid.push([`${name} twice`, { ...valid, query: [...rest, [name, '1'], [name, '1']] }])
    if (required) invalid.push([`${name} is missing`, { ...valid, query: rest }])
    const wrong = 'x'.repeat(1_000)
    if (contract.problem(schema, wrong) !== null) {
      invalid.push([`${name} is malformed`, { ...valid, query: [...rest, [name, wrong]] }])
    }
  }
  const bodies =
    operation.body?.schema == null ? [] : invalidBodies(contract, operation, valid.body)
  const withBodies = bodies.map(([defect, body]): [string, Sample] => [defect, { ...valid, body }])
  return [...invalid, ...withBodies]
}

function invalidBodies(
  contract: Contract,
  { body }: DocumentedOperation,
  valid: unknown,
): [string, unknown][] {
  const schema = contract.resolve(body!.schema!)
  const object = valid as Readonly<Record<string, unknown>>
  const invalid: [string, unknown][] = [['an unknown field', { ...object, surprise: 1 }]]
  for (const name of (schema.required ?? []) as string[]) {
    const { [name]: _, ...others } = object
    invalid.push([`${name} is missing`, others])
  }
  for (const name of Object.keys((schema.properties ?? {}) as object)) {
    for (const value of INVALID) {
      const shown = JSON.stringify(value).slice(0, 20)
      invalid.push([`${name} is ${shown}`, { ...object, [name]: value }])
    }
  }
  return invalid.filter(([, each]) => contract.problem(schema, each) !== null)
}
