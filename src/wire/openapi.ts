/** The OpenAPI document of both origins. */
import { schema } from './schema.ts'

/** OpenAPI 3.1 defines the other fields. */
export const OpenApiDocument = schema({ openapi: "'3.1.1'", '+': 'ignore' })
