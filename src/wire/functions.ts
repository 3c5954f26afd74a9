/** The Function catalog of a target (wire decisions, section 5). */
import type { FieldsJson, ValidatorJson } from '../value/validators.ts'
import { idField } from './fields.ts'
import { message } from './schema.ts'

export const FunctionsQuery = message({
  /** There is no default (Document 2, Targets). */
  target: message('string <= 128').describe('a target such as channel:production'),
})

/** Validators of the fields of an object by name, checked by value/validator-json.ts. */
const FieldsField = message('object').configure({ title: 'ValidatorFields' }).as<FieldsJson>()
const ValidatorField = message('object').configure({ title: 'Validator' }).as<ValidatorJson>()

export const FunctionCatalog = message({
  version: '1',
  releaseId: idField('rel'),
  /** Sorted by name. */
  functions: message({
    name: 'string',
    kind: "'query' | 'mutation' | 'action'",
    visibility: "'public' | 'internal'",
    clients: "('public' | 'confidential')[]",
    auth: "'none' | 'optional' | 'guest' | 'user' | 'service'",
    arguments: FieldsField,
    returns: ValidatorField,
    errors: { '[string]': "'invalid' | 'forbidden' | 'not_found' | 'conflict'" },
    /** What an Action may reach; empty lists for other kinds. */
    uses: { network: 'string[]', secrets: 'string[]' },
  }).array(),
})
export type FunctionCatalog = typeof FunctionCatalog.infer
