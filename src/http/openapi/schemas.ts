/** The schemas of wire as components of the document, under their export names. */
import { canonicalJson } from '../../value/canonical-json.ts'
import type { Json } from '../../value/strict-json.ts'
import * as applicationClients from '../../wire/application-clients.ts'
import * as catalogs from '../../wire/catalogs.ts'
import * as channels from '../../wire/channels.ts'
import * as configuration from '../../wire/configuration.ts'
import * as data from '../../wire/data.ts'
import * as environment from '../../wire/environment.ts'
import * as errors from '../../wire/errors.ts'
import * as fields from '../../wire/fields.ts'
import * as health from '../../wire/health.ts'
import * as operations from '../../wire/idempotency-records.ts'
import * as access from '../../wire/identity/access.ts'
import * as audit from '../../wire/identity/audit.ts'
import * as auth from '../../wire/identity/auth.ts'
import * as oidc from '../../wire/identity/oidc.ts'
import * as invocations from '../../wire/invocations.ts'
import * as metrics from '../../wire/metrics.ts'
import * as openapi from '../../wire/openapi.ts'
import { jsonSchemaOf } from '../../wire/reading/json-schema.ts'
import * as releases from '../../wire/releases.ts'
import type { JsonSchema } from '../../wire/rules.ts'
import { isSchema, type Schema } from '../../wire/schema.ts'
import * as servingPolicy from '../../wire/serving-policy.ts'
import * as status from '../../wire/status.ts'
import * as workspace from '../../wire/workspace.ts'
import { VALUE_SCHEMAS } from './value-schemas.ts'

const MODULES: readonly Readonly<Record<string, unknown>>[] = [
  access,
  applicationClients,
  audit,
  auth,
  catalogs,
  channels,
  configuration,
  data,
  environment,
  errors,
  fields,
  health,
  invocations,
  metrics,
  oidc,
  openapi,
  operations,
  releases,
  servingPolicy,
  status,
  workspace,
]

/** Collects the components that operations reference. */
export class Schemas {
  readonly #names = namesByText()
  readonly #components = new Map<string, unknown>()
  readonly #references = new Map<Schema<unknown>, JsonSchema>()

  /** Returns a reference where the schema has a name, otherwise the schema itself. */
  of(schema: Schema<unknown>): JsonSchema {
    const reference = this.#references.get(schema) ?? this.ofJson(jsonSchemaOf(schema))
    this.#references.set(schema, reference)
    return reference
  }

  ofJson(schema: JsonSchema): JsonSchema {
    return this.#refer(schema as Json, null) as JsonSchema
  }

  /** Returns the components, sorted by name. */
  components(): Record<string, unknown> {
    return Object.fromEntries([...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** Replaces named schemas by references, except `own`, which is being written. */
  #refer(json: Json, own: string | null): Json {
    if (Array.isArray(json)) return json.map((item) => this.#refer(item, own))
    if (json === null || typeof json !== 'object') return json
    const name = this.#nameOf(json)
    if (name !== undefined && name !== own) return this.#component(name, json)
    return Object.fromEntries(
      Object.entries(json).map(([key, each]) => [key, this.#refer(each, own)]),
    )
  }

  #nameOf(json: { readonly [key: string]: Json }): string | undefined {
    const { title } = json
    if (typeof title === 'string' && Object.hasOwn(VALUE_SCHEMAS, title)) return title
    return this.#names.get(canonicalJson(json))
  }

  #component(name: string, json: Json): Json {
    if (!this.#components.has(name)) {
      // The name is set before the schema is written, since a schema may contain itself.
      this.#components.set(name, null)
      const own = VALUE_SCHEMAS[name]
      this.#components.set(name, own ?? this.#refer(json, name))
      for (const other of referencesIn(own)) this.#component(other, null)
    }
    return { $ref: `#/components/schemas/${name}` }
  }
}

function namesByText(): Map<string, string> {
  const names = new Map<string, string>()
  // The names are sorted, since a bundle changes the order of exports.
  const exports = MODULES.flatMap((exported) => Object.entries(exported))
  for (const [name, schema] of exports.sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!isSchema(schema)) continue
    const text = canonicalJson(jsonSchemaOf(schema) as Json)
    if (!names.has(text)) names.set(text, name.replace(/Field$/, ''))
  }
  return names
}

function referencesIn(schema: JsonSchema | undefined): string[] {
  const references = JSON.stringify(schema ?? null).matchAll(/"#\/components\/schemas\/(\w+)"/g)
  return [...references].map(([, name]) => name!)
}
