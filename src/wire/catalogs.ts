/** The catalogs of a target: its Functions and its tables (contract/wire.md, Catalogs). */
import { ROUTES_MAX } from '../value/http/routes.ts'
import type { FieldsJson, ValidatorJson } from '../value/validators.ts'
import { idField, listUpTo, TargetField } from './fields.ts'
import { HttpRouteField } from './files/http-routes.ts'
import { RetryField } from './files/retries.ts'
import { declaredSchema, type Infer, type Schema, schema } from './schema.ts'

export const CatalogQuery = schema({
  /** Required, without a default (contract/application.md, Targets). */
  target: TargetField,
})

/** An object that value/validator-json.ts checks. */
function uncheckedField<T extends object>(title: string): Schema<T> {
  return declaredSchema([{ '+': 'ignore' }, '@', { title }])
}

/** Validators of the fields of an object by name. */
const FieldsField = uncheckedField<FieldsJson>('ValidatorFields')
const ValidatorField = uncheckedField<ValidatorJson>('Validator')

export const FunctionCatalog = schema({
  version: '1',
  releaseId: idField('rel'),
  /** Sorted by name. */
  functions: [
    {
      name: 'string',
      kind: "'query' | 'mutation' | 'action'",
      visibility: "'public' | 'internal'",
      clients: "('public' | 'confidential')[]",
      auth: "'none' | 'optional' | 'guest' | 'user' | 'service'",
      arguments: FieldsField,
      returns: ValidatorField,
      errors: schema({ '[string]': "'invalid' | 'forbidden' | 'not_found' | 'conflict'" }),
      /** Resources that an Action may use; empty lists and `none` for other kinds. */
      uses: { network: 'string[]', secrets: 'string[]', storage: "'none' | 'read' | 'write'" },
      /** Attempts of an Action that may run more than once where it is scheduled. */
      'retry?': RetryField,
      /** Present where results of the Query are never compressed. */
      'compress?': 'false',
    },
    '[]',
  ],
  /** The routes of `http.ts`, sorted by name; absent without any. */
  'http?': listUpTo(HttpRouteField, ROUTES_MAX),
})
export type FunctionCatalog = Infer<typeof FunctionCatalog>

export const TableCatalog = schema({
  version: '1',
  releaseId: idField('rel'),
  /** Sorted by name. */
  tables: [
    {
      name: 'string',
      fields: FieldsField,
      /** Sorted by name. Every index ends with the creation order. */
      indexes: [{ name: 'string', fields: 'string[]', unique: 'boolean' }, '[]'],
    },
    '[]',
  ],
})
export type TableCatalog = Infer<typeof TableCatalog>
