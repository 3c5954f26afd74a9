/** Responses to failed requests in the form of S3: XML, without the error envelope. */
import { type S3Failure, s3StatusOf } from './errors.ts'
import { element, xmlResponse } from './xml/writer.ts'

/** Returns the XML response for the failure of a whole request. */
export function errorResponse(
  { s3Code, s3Message }: Omit<S3Failure, 'fault'>,
  path: string,
  requestId: string,
): Response {
  const status = s3StatusOf(s3Code)
  const fields = [element('Code', s3Code), element('Message', s3Message)]
  const where = [element('Resource', path), element('RequestId', requestId)]
  const response = xmlResponse(element('Error', [...fields, ...where], false), status)
  if (status === 503) response.headers.set('retry-after', '1')
  return response
}
