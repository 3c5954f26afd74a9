/** `endpoint`: declares a request of programs that calls a Function. */
import {
  ENDPOINT_BYTES_DEFAULT,
  ENDPOINT_BYTES_MAX,
  ENDPOINT_ORIGINS_MAX,
  type EndpointManifest,
  EVERY_ORIGIN,
  isOrigin,
} from '../value/http/routes.ts'
import { DefinitionError, isPlainObject, rejectUnknownOptions } from './definition-errors.ts'
import { referencedFunction } from './function-references.ts'
import { bytesOf, methodsOf, pathOf } from './route-options.ts'
import { kindOf } from './validators.ts'

const ENDPOINT = Symbol.for('svc.endpoint')
const OPTIONS = ['path', 'methods', 'maximumBytes', 'origins', 'handler']
/** Options that would repeat, or contradict, the declaration of the Function. */
const OF_FUNCTION = ['arguments', 'auth', 'errors', 'returns']

export interface EndpointDefinition {
  /** The part that the runner reads; its name is the key of `httpRoutes`. */
  readonly [ENDPOINT]: Omit<EndpointManifest, 'name'>
}

/** Returns the content of an endpoint; undefined for any other value. */
export function endpointContent(value: unknown): Omit<EndpointManifest, 'name'> | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as Partial<EndpointDefinition>)[ENDPOINT]
}

/** Declares an endpoint: a request calls the Function and is answered with its result. */
export function endpoint(definition: unknown): EndpointDefinition {
  const owner = 'endpoint(...)'
  if (!isPlainObject(definition)) {
    throw new DefinitionError(
      `${owner} is given ${kindOf(definition)}`,
      'Pass an object: { path: "/orders/:id", methods: ["GET"], handler: api.orders.read }',
    )
  }
  const repeated = OF_FUNCTION.find((name) => Object.hasOwn(definition, name))
  if (repeated !== undefined) {
    const fix = 'Leave it out: the declaration of the Function counts, which may be an internal one'
    throw new DefinitionError(`${owner} has no option "${repeated}"`, fix)
  }
  rejectUnknownOptions(definition, OPTIONS, owner)
  if (definition.methods === undefined) {
    const fix = 'Write methods: ["GET"] for a Query, ["POST"] for a Mutation or an Action'
    throw new DefinitionError(`${owner} has no methods`, fix)
  }
  const content: Omit<EndpointManifest, 'name'> = {
    kind: 'endpoint',
    path: pathOf(definition.path, owner),
    methods: methodsOf(definition.methods, owner),
    maximumBytes: bytesOf(definition.maximumBytes ?? ENDPOINT_BYTES_DEFAULT, {
      owner,
      max: ENDPOINT_BYTES_MAX,
    }),
    origins: originsOf(definition.origins ?? [], owner),
    function: referencedFunction(definition.handler, {
      option: `${owner} handler`,
      example: 'api.orders.read',
    }),
  }
  return Object.freeze({ [ENDPOINT]: Object.freeze(content) })
}

function originsOf(value: unknown, owner: string): readonly string[] {
  if (value === EVERY_ORIGIN) return [EVERY_ORIGIN]
  if (!Array.isArray(value)) {
    const fix = 'Write a list such as ["https://app.example.com"], or "*" for the pages of all'
    const shown = typeof value === 'string' ? `"${value}"` : kindOf(value)
    throw new DefinitionError(`${owner} origins is ${shown}`, fix)
  }
  if (value.length > ENDPOINT_ORIGINS_MAX) {
    const fix = `List at most ${ENDPOINT_ORIGINS_MAX}`
    throw new DefinitionError(`${owner} origins lists ${value.length}`, fix)
  }
  for (const [i, origin] of value.entries()) {
    if (typeof origin !== 'string' || !isOrigin(origin)) {
      const shown = typeof origin === 'string' ? `"${origin}"` : kindOf(origin)
      const fix = 'Write it as browsers send it: scheme, host, and a port that is not the usual one'
      throw new DefinitionError(`${owner} origins lists ${shown}`, fix)
    }
    if (value.indexOf(origin) === i) continue
    throw new DefinitionError(`${owner} origins lists "${origin}" twice`, 'List each once')
  }
  return (value as string[]).toSorted()
}
