/** `httpRoutes` and `hook`: declare which requests of other services and programs are handled. */
import {
  deliveryHeaders,
  HEADER_NAME,
  HOOK_BYTES_DEFAULT,
  HOOK_BYTES_MAX,
  HOOK_HEADERS_MAX,
  type HookManifest,
  ROUTE_NAME,
  ROUTES_MAX,
  SECRET_HEADERS,
  type SignatureManifest,
} from '../value/http/routes.ts'
import { DefinitionError, isPlainObject, rejectUnknownOptions } from './definition-errors.ts'
import { endpointContent } from './endpoints.ts'
import { referencedFunction } from './function-references.ts'
import { bytesOf, methodsOf, pathOf } from './route-options.ts'
import { isSignature, signatureContent } from './signatures.ts'
import { kindOf } from './validators.ts'

const HTTP = Symbol.for('svc.http')
const HOOK = Symbol.for('svc.hook')
const OPTIONS = ['path', 'methods', 'maximumBytes', 'headers', 'verify', 'once', 'reply', 'handler']
const EXAMPLE =
  '{ stripe: hook({ path: "/stripe", verify: signature.stripe({ secret: "STRIPE_WEBHOOK" }), ' +
  'handler: internal.payments.onEvent }) }'

/** The part of a hook that the runner reads; its name is the key of `httpRoutes`. */
interface HookContent extends Omit<HookManifest, 'name' | 'hasOnce'> {
  readonly once: ((delivery: unknown) => unknown) | null
}

type RouteContent = HookContent | NonNullable<ReturnType<typeof endpointContent>>

export interface HookDefinition {
  readonly [HOOK]: HookContent
}

export interface HttpDefinition {
  readonly [HTTP]: readonly (RouteContent & { readonly name: string })[]
}

/** Declares routes by name. Throws DefinitionError for the first invalid one. */
export function httpRoutes(definitions: unknown): HttpDefinition {
  if (!isPlainObject(definitions)) {
    throw new DefinitionError(
      `httpRoutes(...) is given ${kindOf(definitions)}`,
      `Pass routes by name: ${EXAMPLE}`,
    )
  }
  const entries = Object.entries(definitions)
  if (entries.length > ROUTES_MAX) {
    const fix = `Declare at most ${ROUTES_MAX}`
    throw new DefinitionError(`httpRoutes(...) has ${entries.length} routes`, fix)
  }
  const routes = entries.map(([name, route]) => ({ name, ...contentOf(name, route) }))
  return Object.freeze({ [HTTP]: routes })
}

function contentOf(name: string, route: unknown): RouteContent {
  if (!ROUTE_NAME.test(name)) {
    throw new DefinitionError(
      `httpRoutes(...) has a route "${name}"`,
      'Use a letter, then letters, digits, _ and -, at most 64 characters',
    )
  }
  const content = hookContent(route) ?? endpointContent(route)
  if (content !== undefined) return content
  throw new DefinitionError(
    `httpRoutes(...) ${name} is ${kindOf(route)}, neither a hook nor an endpoint`,
    `Write ${name}: hook({ path: ..., verify: ..., handler: ... }), or endpoint({ ... })`,
  )
}

function hookContent(route: unknown): HookContent | undefined {
  if (typeof route !== 'object' || route === null) return undefined
  return (route as Partial<HookDefinition>)[HOOK]
}

/** Declares an inbox: each event of another service is handled once. */
export function hook(definition: unknown): HookDefinition {
  const owner = 'hook(...)'
  if (!isPlainObject(definition)) {
    throw new DefinitionError(
      `${owner} is given ${kindOf(definition)}`,
      'Pass an object: { path: "/stripe", verify: ..., handler: ... }',
    )
  }
  rejectUnknownOptions(definition, OPTIONS, owner)
  const verify = verificationOf(definition.verify, owner)
  const content: HookContent = {
    kind: 'hook',
    path: pathOf(definition.path, owner),
    methods: methodsOf(definition.methods ?? ['POST'], owner),
    maximumBytes: bytesOf(definition.maximumBytes ?? HOOK_BYTES_DEFAULT, {
      owner,
      max: HOOK_BYTES_MAX,
    }),
    headers: deliveryHeaders(verify, headersOf(definition.headers ?? [], owner)),
    verify,
    once: onceOf(definition.once, owner),
    ...(repliesResult(definition.reply, owner) && { reply: 'result' }),
    function: referencedFunction(definition.handler, {
      option: `${owner} handler`,
      example: 'internal.payments.onEvent',
    }),
  }
  return Object.freeze({ [HOOK]: Object.freeze(content) })
}

function headersOf(value: unknown, owner: string): readonly string[] {
  if (!Array.isArray(value)) {
    const fix = 'Write the names of the headers that the handler reads: ["x-github-event"]'
    throw new DefinitionError(`${owner} headers is ${kindOf(value)}`, fix)
  }
  if (value.length > HOOK_HEADERS_MAX) {
    const fix = `Name at most ${HOOK_HEADERS_MAX}`
    throw new DefinitionError(`${owner} headers lists ${value.length} names`, fix)
  }
  for (const name of value) {
    if (typeof name !== 'string' || !HEADER_NAME.test(name)) {
      const shown = typeof name === 'string' ? `"${name}"` : kindOf(name)
      const fix = 'Write names in lower case, such as "x-github-event"'
      throw new DefinitionError(`${owner} headers lists ${shown}`, fix)
    }
    if (!SECRET_HEADERS.includes(name)) continue
    const fix = 'Leave it out: deliveries are stored, and no credential is'
    throw new DefinitionError(`${owner} headers lists "${name}", which is a credential`, fix)
  }
  return value as string[]
}

function verificationOf(value: unknown, owner: string): SignatureManifest | null {
  if (value === 'none') return null
  if (isSignature(value)) return signatureContent(value)
  throw new DefinitionError(
    `${owner} verify is ${typeof value === 'string' ? `"${value}"` : kindOf(value)}`,
    'Write signature.standardWebhooks({ secret: "WEBHOOK_SECRET" }) or another one of ' +
      '`signature`, or "none" to accept requests of everybody who knows the URL',
  )
}

function repliesResult(value: unknown, owner: string): boolean {
  if (value === undefined || value === 'accepted') return false
  if (value === 'result') return true
  throw new DefinitionError(
    `${owner} reply is ${typeof value === 'string' ? `"${value}"` : kindOf(value)}`,
    'Write "result" to answer with the result of the handler, or leave it out',
  )
}

function onceOf(value: unknown, owner: string): HookContent['once'] {
  if (value === undefined) return null
  if (typeof value === 'function') return value as HookContent['once']
  throw new DefinitionError(
    `${owner} once is ${kindOf(value)}`,
    'Write once: (delivery) => delivery.json.id, or leave it out to compare the bodies',
  )
}
