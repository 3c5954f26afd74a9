/** A Function as the catalog of a target has it. */
import type { FunctionCatalog } from '../../../wire/catalogs.ts'

export type FunctionField = FunctionCatalog['functions'][number]
