"""unicaps, in its dialect for 2captcha: httpx, classic, JSON. It polls with get2 and nothing else."""

import driver

order = driver.prepare()

import unicaps  # noqa: E402

driver.watch_httpx()


def call(client, order):
    page, key = order.page, order.site_key
    match order.what:
        case "image":
            return client.solve_image_captcha(order.image)
        case "text":
            return client.solve_text_captcha(order.question)
        case "recaptcha_v2":
            return client.solve_recaptcha_v2(key, page)
        case "recaptcha_v2_enterprise":
            return client.solve_recaptcha_v2(key, page, is_enterprise=True)
        case "recaptcha_v3":
            return client.solve_recaptcha_v3(key, page, action="login", min_score=0.3)
        case "hcaptcha":
            return client.solve_hcaptcha(key, page)
        case "geetest":
            return client.solve_geetest(page_url=page, gt_key=order.gt, challenge=order.challenge)
        case "geetest_v4":
            return client.solve_geetest_v4(page_url=page, captcha_id=order.gt)
        case "funcaptcha":
            return client.solve_funcaptcha(key, page)
    raise driver.NotOffered(order)


async def solve(order):
    kind = unicaps.AsyncCaptchaSolver if order.how == "async" else unicaps.CaptchaSolver
    client = kind(unicaps.CaptchaSolvingService.TWOCAPTCHA, order.key)
    client._service.BASE_URL = order.base
    for settings in client._service.settings.values():
        settings.polling_delay = settings.polling_interval = 1
    if order.what == "balance":
        return await driver.settled(client.get_balance())
    solved = await driver.settled(call(client, order))
    if solved.cost is None:
        raise ValueError("get2 did not say what it cost")
    if order.report:
        reply = solved.report_good(True) if order.report == "good" else solved.report_bad(True)
        if not await driver.settled(reply):
            raise ValueError("the report was not accepted")
    words = vars(solved.solution)
    return next(iter(words.values())) if len(words) == 1 else words, solved.captcha_id


driver.run(solve, order)
