/** The description of both origins. */
import { message } from './schema.ts'

/** The rules of OpenAPI 3.1 say the rest. */
export const OpenApiDocument = message({ openapi: "'3.1.1'", '[string]': 'unknown' })
