/** The description of both origins. */
import * as z from 'zod'

/** The rules of OpenAPI 3.1 say the rest. */
export const OpenApiDocument = z.looseObject({ openapi: z.literal('3.1.1') })
