/** The Function catalog of a target (wire decisions, section 5). */
import type { FieldsJson, ValidatorJson } from '../value/validators.ts'
import { idField } from './fields.ts'
import { message } from './schema.ts'

/** `arguments` and `returns` are validators, checked by value/validator-json.ts. */
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
    arguments: message('object').as<FieldsJson>(),
    returns: message('object').as<ValidatorJson>(),
    errors: { '[string]': "'invalid' | 'forbidden' | 'not_found' | 'conflict'" },
    /** What an Action may reach; empty lists for other kinds. */
    uses: { network: 'string[]', secrets: 'string[]' },
  }).array(),
})
export type FunctionCatalog = typeof FunctionCatalog.infer
