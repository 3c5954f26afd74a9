/** The Function catalog of a target (wire decisions, section 5). */
import type { FieldsJson, ValidatorJson } from '../value/validators.ts'
import { idField, TargetField } from './fields.ts'
import { type Infer, type Schema, schema, schemaOf } from './schema.ts'

export const FunctionsQuery = schema({
  /** Required, without a default (Document 2, Targets). */
  target: TargetField,
})

/** An object that value/validator-json.ts checks. */
function uncheckedField<T extends object>(title: string): Schema<T> {
  return schemaOf([{ '+': 'ignore' }, '@', { title }])
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
      /** Hosts and secrets that an Action may use; empty lists for other kinds. */
      uses: { network: 'string[]', secrets: 'string[]' },
    },
    '[]',
  ],
})
export type FunctionCatalog = Infer<typeof FunctionCatalog>
