/** The Function catalog of a target (wire decisions, section 5). */
import * as z from 'zod'
import type { FieldsJson, ValidatorJson } from '../value/validators.ts'
import { idField, TargetField } from './fields.ts'

export const FunctionsQuery = z.strictObject({
  /** There is no default (Document 2, Targets). */
  target: TargetField,
})

/** An object that value/validator-json.ts checks. */
function uncheckedField<T extends object>(title: string): z.ZodType<T> {
  const field: z.ZodType = z.looseObject({}).meta({ title })
  return field as z.ZodType<T>
}

/** Validators of the fields of an object by name. */
const FieldsField = uncheckedField<FieldsJson>('ValidatorFields')
const ValidatorField = uncheckedField<ValidatorJson>('Validator')

export const FunctionCatalog = z.strictObject({
  version: z.literal(1),
  releaseId: idField('rel'),
  /** Sorted by name. */
  functions: z
    .strictObject({
      name: z.string(),
      kind: z.enum(['query', 'mutation', 'action']),
      visibility: z.enum(['public', 'internal']),
      clients: z.array(z.enum(['public', 'confidential'])),
      auth: z.enum(['none', 'optional', 'guest', 'user', 'service']),
      arguments: FieldsField,
      returns: ValidatorField,
      errors: z.record(z.string(), z.enum(['invalid', 'forbidden', 'not_found', 'conflict'])),
      /** What an Action may reach; empty lists for other kinds. */
      uses: z.strictObject({ network: z.array(z.string()), secrets: z.array(z.string()) }),
    })
    .array(),
})
export type FunctionCatalog = z.infer<typeof FunctionCatalog>
