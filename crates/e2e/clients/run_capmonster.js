// @zennolab_com/capmonstercloud-client, the official client of CapMonster: JSON. It drops any path of its address,
// accepts no status except 200, and waits ten seconds for an image by default.
'use strict';

const { installed, notOffered, order, run } = require('./driver.js');
const capmonster = require(installed('@zennolab_com/capmonstercloud-client'));

const SPANS = { firstRequestDelay: 300, firstRequestNoCacheDelay: 300, requestsInterval: 500, timeout: 80_000 };

function task() {
    const site = { websiteURL: order.page, websiteKey: order.siteKey };
    const { type, host, port, login, password } = order.proxy;
    const proxy = { proxyType: type, proxyAddress: host, proxyPort: port, proxyLogin: login, proxyPassword: password };
    switch (order.what) {
        case 'image':
            return new capmonster.ImageToTextRequest({ body: order.image });
        case 'recaptcha_v2':
            return new capmonster.RecaptchaV2Request(site);
        case 'recaptcha_v2_proxy':
            return new capmonster.RecaptchaV2Request({ ...site, proxy, userAgent: order.agent });
        case 'recaptcha_v2_enterprise':
            return new capmonster.RecaptchaV2EnterpriseRequest(site);
        case 'recaptcha_v3':
            return new capmonster.RecaptchaV3ProxylessRequest({ ...site, minScore: 0.3, pageAction: 'login' });
        case 'turnstile':
            return new capmonster.TurnstileRequest(site);
        case 'geetest':
            return new capmonster.GeeTestRequest({ websiteURL: order.page, gt: order.gt, challenge: order.challenge });
        case 'hcaptcha':
            return new capmonster.HCaptchaRequest(site);
        case 'funcaptcha':
            return new capmonster.FunCaptchaRequest({ websiteURL: order.page, websitePublicKey: order.siteKey });
        default:
            throw notOffered();
    }
}

run(async () => {
    const options = new capmonster.ClientOptions({ clientKey: order.key, serviceUrl: order.base });
    const client = capmonster.CapMonsterCloudClientFactory.Create(options);
    if (order.what === 'balance') return { answer: (await client.getBalance()).balance };
    const { error, solution } = await client.Solve(task(), SPANS);
    if (error !== undefined) throw new Error(error);
    return { answer: solution.gRecaptchaResponse ?? solution.text ?? solution.token ?? solution };
});
