/** Liveness and readiness (Document 1, Endpoints). */
import { message } from './schema.ts'

export const Live = message({ status: "'live'" })
export type Live = typeof Live.infer

export const Ready = message({ status: "'ready' | 'unavailable'" })
export type Ready = typeof Ready.infer
