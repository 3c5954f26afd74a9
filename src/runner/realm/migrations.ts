/**
 * The code of migrations. A call of one gets a batch of documents and returns what each of them is
 * patched with, up to the first one for which the code of the author throws.
 */
import type { MigrationManifest } from '../../value/manifest.ts'
import { migrationDigest } from '../../value/migrations/migrations.ts'

type Each = (ctx: unknown, document: unknown) => unknown

export interface DefinedMigration extends Omit<MigrationManifest, 'digest'> {
  readonly each: Each
}

/** Functions of the realm, which the caller passes on. */
export interface Encoders {
  /** Returns Stored JSON text of a value that a message calls `what`. */
  readonly encode: (value: unknown, what: string) => string
  /** Returns the JSON text of an ErrorReport. */
  readonly report: (thrown: unknown) => string
}

const { stringify } = JSON
const { isArray } = Array
const { keys } = Object
const sourceOf = Function.prototype.toString
const { apply } = Reflect

export function describeMigration(migration: DefinedMigration): MigrationManifest {
  const { name, table, index, batch, each } = migration
  const source = apply(sourceOf, each, []) as string
  return { name, table, index, batch, digest: migrationDigest({ name, table, index, source }) }
}

/**
 * Returns the handler of a batch. Its result has a text for each document: null for one that stays
 * as it is, else the JSON text of the fields to set and the names of those to remove.
 */
export function migrationHandler({ each }: DefinedMigration, { encode, report }: Encoders) {
  return async (ctx: unknown, args: unknown): Promise<unknown> => {
    const { documents } = args as { readonly documents: readonly unknown[] }
    const patches: (string | null)[] = []
    for (let i = 0; i < documents.length; i++) {
      try {
        patches[i] = patchText(await each(ctx, documents[i]), encode)
      } catch (thrown) {
        return { patches, failure: report(thrown) }
      }
    }
    return { patches, failure: null }
  }
}

function patchText(patch: unknown, encode: Encoders['encode']): string | null {
  if (patch === null) return null
  if (typeof patch !== 'object' || isArray(patch)) {
    const fix = 'return an object of fields, or null to leave the document as it is'
    throw new TypeError(`each returned ${patch === undefined ? 'undefined' : 'no object'}: ${fix}`)
  }
  const fields = encode(patch, 'patch')
  const names = keys(patch)
  let removed = ''
  for (let i = 0; i < names.length; i++) {
    if ((patch as Record<string, unknown>)[names[i]!] !== undefined) continue
    removed += `${removed === '' ? '' : ','}${stringify(names[i])}`
  }
  return `[${fields},[${removed}]]`
}
