/** The description of both origins. */
import { schema } from './schema.ts'

/** The rules of OpenAPI 3.1 say the rest. */
export const OpenApiDocument = schema({ openapi: "'3.1.1'", '+': 'ignore' })
