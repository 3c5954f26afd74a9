/** Answers about buckets whose settings operators manage, in the forms that clients expect. */
import { S3Fault } from '../errors.ts'
import { element, XmlNode, xmlResponse } from '../xml/writer.ts'
import { ownerOf } from './listing.ts'

const INSTANCE = 'http://www.w3.org/2001/XMLSchema-instance'

/** Any region is accepted; none means the first one. */
export function bucketLocation(): Response {
  return xmlResponse(element('LocationConstraint', '', true))
}

/** The answer for a bucket that never had versions. */
export function bucketVersioning(): Response {
  return xmlResponse(element('VersioningConfiguration', '', true))
}

export function requestPayment(): Response {
  const payer = element('Payer', 'BucketOwner')
  return xmlResponse(element('RequestPaymentConfiguration', [payer], true))
}

/** The keys of a bucket alone give access. */
export function accessControl(): Response {
  const { text } = ownerOf('Grantee')
  const type = `<Grantee xmlns:xsi="${INSTANCE}" xsi:type="CanonicalUser">`
  const grantee = new XmlNode(text.replace('<Grantee>', type))
  const grant = element('Grant', [grantee, element('Permission', 'FULL_CONTROL')])
  const fields = [ownerOf('Owner'), element('AccessControlList', [grant])]
  return xmlResponse(element('AccessControlPolicy', fields, true))
}

/** Objects have no tags. */
export function objectTagging(): Response {
  return xmlResponse(element('Tagging', [element('TagSet', '')], true))
}

/** Clients create a bucket before they use it, and accept that it exists. */
export function createBucket(): Response {
  throw new S3Fault('BucketAlreadyOwnedByYou')
}

export function headBucket(): Response {
  return new Response(null, { headers: { 'x-amz-bucket-region': 'us-east-1' } })
}
